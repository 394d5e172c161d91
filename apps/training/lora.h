#pragma once

/// @file
/// Use:
///
///     const auto adapters = zoo::LoraAdapters::add_to(*model, {.rank = 8, .alpha = 16});
///     // … train; then save the merged weights:
///     zoo::save_model(*model, family, head, "tuned", {.replaced = adapters->merged_weights()});

#include <map>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "models/formats/safetensors.h"
#include "models/layers/linear.h"

namespace zoo {

/// True if `name` matches a pattern: * is any text, ? any one character.
bool fits(const std::string& pattern, const std::string& name);

/// Freezes parameters whose names match one of the patterns. Returns their number. Throws Error naming a
/// pattern that matches none.
std::int64_t freeze(torch::nn::Module& module, const std::vector<std::string>& patterns);

/// Low-rank adapters, LoRA (Hu et al., 2022): freezes a projection W of the module and gives it the low-rank
/// term s B A, s = alpha / rank, with A [rank, in] random and B [out, rank] zero at first. The adapters
/// become the submodule "lora", so an optimizer finds them.
class LoraAdapters : public torch::nn::Module {
 public:
  struct Options {
    std::int64_t rank = 8;
    double alpha = 16;
    bool rslora = false;  // the scale is alpha / sqrt(rank) (Kalajdzievski, 2023)
    bool dora = false;    // magnitudes, at first the norms of W's rows, are trained, too (Liu et al., 2024)
    std::vector<std::string> targets{"*attention*"};  // patterns for names of projections
    std::vector<std::string> trains;  // patterns for other parameters to train, such as a new head
    std::uint64_t seed = 0;
    std::map<std::string, LowRankTerm> terms;  // to go on from, by weights' names, in place of `targets`
    std::string base;  // path of the model that is adapted, for adapter_config.json; empty: none

    double scale() const;  // of the terms
  };

  /// Freezes the module except `trains`. Throws Error naming the patterns if no projection matches, or the
  /// weight that does not fit a term, for a rank below 1 and for a module that has adapters.
  static std::shared_ptr<LoraAdapters> add_to(torch::nn::Module& module, const Options& options);

  /// W + s B A, of DoRA with its magnitudes, of each projection, by its parameter's name in the module: the
  /// merged model's weights.
  std::map<std::string, at::Tensor> merged_weights() const;

  /// The terms s B A, by the same names.
  std::map<std::string, LowRankTerm> terms() const;

  const Options& options() const { return options_; }

  /// The adapters' tensors by name.
  NamedTensors state() const;
  /// The terms of a state, to go on from: of the scale of `options`. Throws Error naming the file and a
  /// tensor that is missing or of no projection of the module.
  static std::map<std::string, LowRankTerm> terms_in(const SafetensorsFile& state,
                                                     const torch::nn::Module& module, const Options& options);

 private:
  void adapt(const std::string& name, const std::shared_ptr<LinearImpl>& projection, const LowRankTerm& term);

  Options options_;
  std::map<std::string, std::shared_ptr<LinearImpl>> adapted_;  // by the projection's name in the module
};

}  // namespace zoo
