#pragma once

#include <functional>
#include <vector>

#include "models/model.h"

namespace zoo {

/// Comparison of an exported program with its model.
struct VerifyReport {
  struct Comparison {
    std::int64_t batch = 0, length = 0;
    bool padded = false;  // with a mask that hides the beginning of a row and the end of another
    /// The largest difference of an output from the model's, relative to its largest value; from the model's
    /// in float64 if it is beyond 1e-5 in float32.
    double error = 0;
  };
  std::vector<Comparison> logits;  // of the outputs of the program's forward
  /// Largest accepted `error`: 1e-5 in float32, or six times the model's own distance from float64 if that is
  /// more; 2e-2 in the 16-bit types.
  double tolerance = 0;
  std::int64_t greedy_tokens = 0;     // new tokens compared; 0 of a file that does not generate
  std::int64_t greedy_different = 0;  // of them
  bool exact_tokens = true;           // none may differ: float32, in which rounding does not decide ties

  double largest_error() const;
  /// True if every error is within the tolerance and, if tokens must be exact, no greedy token differs.
  bool good() const { return largest_error() <= tolerance && (!exact_tokens || greedy_different == 0); }
};

/// What an exported program returns of a model's outputs: logits; a pair of start and end logits, or of those
/// of words and sentences; of a bare model last_hidden_state.
std::vector<at::Tensor> exported_outputs(const ModelOutput& output);

/// True if the head reads each row's last token and the configuration does not say what padding is.
bool takes_one_row(const Model& model);

/// Compares the outputs of a program at three shapes, one of them padded. `run` returns its
/// exported_outputs() for some inputs. Uses the model's type and device.
using Program = std::function<std::vector<at::Tensor>(const ModelInputs&)>;
VerifyReport verify_outputs(const Program& run, Model& model);

/// Ids [batch, length] that differ between positions and rows; their values do not matter.
at::Tensor ids_to_verify(std::int64_t batch, std::int64_t length, std::int64_t vocab_size);

}  // namespace zoo
