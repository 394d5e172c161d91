#pragma once

/// @file
/// Use:
///
///     zoo::GraphedSteps steps(model, cache);
///     const at::Tensor logits = steps.step(ids, begins);  // [B, V]; undefined: take the usual way

#include <memory>
#include <optional>

#include "models/generation/graphs/device_graph.h"
#include "models/generation/graphs/fixed_step.h"

namespace zoo {

/// A session's steps of one token a row on a GPU: once the same rows have taken a few, the step's kernels are
/// recorded and from then on launched together.
class GraphedSteps {
 public:
  GraphedSteps(Model& model, KeyValueCache& cache);

  /// False on a CPU, and for models whose step cannot be recorded.
  bool possible() const { return possible_; }

  /// Reads ids[b] after the cache's end for row b, which begins at begins[b], and advances the cache. Returns
  /// logits [B, V] float32, valid until the next call, or an undefined tensor if nothing was done, as in the
  /// first steps of changed rows.
  at::Tensor step(const TokenIds& ids, const std::vector<std::int64_t>& begins);

 private:
  bool is_ready(const std::vector<std::int64_t>& begins);
  bool record();

  Model& model_;
  KeyValueCache& cache_;
  bool possible_;
  // What the recorded addresses and sizes belong to.
  std::vector<std::int64_t> begins_;
  std::int64_t moves_ = -1, seen_ = 0, calm_ = 0;  // calm_: steps since the rows changed
  std::optional<FixedStep> step_;
  std::unique_ptr<DeviceGraph> graph_;
};

}  // namespace zoo
