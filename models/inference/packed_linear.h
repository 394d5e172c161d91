#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include "models/checkpoint/stored_weights.h"
#include "models/inference/memory.h"
#include "models/kernels/packed/inference_kernels.h"
#include "models/kernels/parallel.h"
#include "models/layers/linear.h"

namespace zoo::inference {

using kernels::WeightType;

/// A packed weight and its source: a module's parameter, or an expert's rows of it.
struct PackedPart {
  at::Tensor parameter;
  std::string ending;  // end of its name in a file: ".packed", ".packed.EXPERT"
  kernels::PackedWeight weight;
};

/// How the rounding error of a weight's input is passed on to the inputs after it (kernels: FeedbackSource).
struct ErrorFeedback {
  at::Tensor feedback;    // [I, I]
  at::Tensor importance;  // [I]
};

struct PackOptions {
  WeightType weights = WeightType::kFloat32;  // kBlocks: float32 if a file has no blocks
  WeightType cache = WeightType::kFloat32;    // of keys and values: kFloat32, kBfloat16 or kInt8
  bool release = false;  // remove packed weights from the modules, which keep only their shapes
  /// Matrices that the modules lack, or weights that are packed already; null: neither.
  std::shared_ptr<const StoredWeights> stored = nullptr;
  std::vector<PackedPart>* made = nullptr;  // receives all packed weights, which live in the model
  /// Gives the feedback for a parameter that becomes int4; null: each number is rounded to the nearest.
  std::function<ErrorFeedback(const at::Tensor& parameter)> feedback = nullptr;
  /// Called by one thread of a pass with the rows that a stack multiplies with a weight.
  std::function<void(const kernels::PackedWeight&, const kernels::PreparedRows&, std::size_t count)> observe =
      nullptr;

  /// A module's parameter, from the module or from the file.
  WeightRows rows_of(const at::Tensor& parameter) const {
    return stored ? stored->rows_of(parameter) : WeightRows(parameter);
  }
  /// The same for complete sequences, which int8 keys and values would not make faster.
  PackOptions for_whole_sequences() const;
  /// Throws Error if the file of packed weights has unused ones.
  void require_all_taken() const;
};

/// Type and shape of a packed weight's panels in a file: [panels, words, kPanelOutputs, elements of a word],
/// for int4 [panels, groups, bytes].
std::pair<at::ScalarType, std::vector<std::int64_t>> panel_layout(const kernels::PackedWeight& weight);

/// A weight [out, in] and its bias [out], packed (kernels/packed/packed_weight.h), without the original.
/// Threads load one panel's rows at a time; if these are in a mapped file, packing frees its pages, so that
/// memory never holds two complete copies. A weight that is packed in a file stays there.
class PackedLinear {
 public:
  PackedLinear() = default;
  /// A parameter whose numbers are `rows`.
  PackedLinear(const at::Tensor& parameter, const WeightRows& rows, const at::Tensor& bias,
               const PackOptions& options);
  PackedLinear(LinearImpl& linear, const PackOptions& options);
  /// One of the `count` experts that share the rows of a parameter.
  static PackedLinear of_expert(const at::Tensor& parameter, const WeightRows& rows, std::int64_t expert,
                                std::int64_t count, const PackOptions& options);

  const kernels::PackedWeight& weight() const { return weight_; }
  const float* bias() const { return bias_.empty() ? nullptr : bias_.data(); }
  std::size_t bytes() const;

 private:
  // Packs rows [first, last), or uses the file's packed ones.
  void make(PackedPart part, const WeightRows& rows, std::int64_t first, std::int64_t last,
            const PackOptions& options);
  void pack(const WeightRows& rows, std::int64_t first, std::int64_t last,
            const std::optional<ErrorFeedback>& errors);
  void pack_blocks(const WeightRows& rows, std::int64_t first, std::int64_t last);
  // Calls pack_panel() for each panel and its rows [begin, end), on all threads, and frees the rows' pages.
  using PackPanel = c10::function_ref<void(std::size_t panel, std::int64_t begin, std::int64_t end)>;
  void pack_panels(const WeightRows& rows, std::int64_t first, std::int64_t last, PackPanel pack_panel) const;
  void map(const PackedPart& part, const PackedParts& parts);

  Memory memory_;
  at::Tensor mapped_;  // instead of memory_
  std::vector<float> scales_, bias_;
  std::vector<kernels::BlockPanel> blocks_;
  kernels::PackedWeight weight_;
};

/// Rows of a module's weight plus its LoRA term, if it has one, from the module or from the file.
WeightRows rows_of(const LinearImpl& linear, const PackOptions& options);

/// Removes the module's weight, except its shape, if the options say so.
void release(LinearImpl& linear, const PackOptions& options);

/// Outputs that a thread of the team computes: complete panels if there are enough of them.
Team::Part outputs_of(const Team& team, const kernels::PackedWeight& weight);

/// Bytes of the weight, if any, that this thread loads next, for Team::wait(); none for many rows, which need
/// not wait for memory.
std::span<const std::byte> ahead(const Team& team, const PackedLinear* linear, std::size_t rows);

/// Elements of a tensor as float32; empty for an undefined one.
std::vector<float> floats_of(const at::Tensor& tensor);

}  // namespace zoo::inference
