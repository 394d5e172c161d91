#pragma once

#include <functional>
#include <vector>

#include "models/analysis/logit_target.h"
#include "models/analysis/residual_stream.h"

namespace zoo::analysis {

/// The cells of a sweep: a part of each layer at each position; or each of its heads, at all chosen positions
/// together.
struct SweepOptions {
  Shape stack = Shape::kDecoder;
  LayerPart part = LayerPart::kResidual;
  bool heads = false;                   // one cell for each head of the part, an attention
  std::vector<std::int64_t> positions;  // in [0, T); empty: all
  LogitTarget target;                   // what is measured
  /// Called after each forward pass of the sweep; an exception ends the sweep.
  std::function<void(std::int64_t done, std::int64_t total)> progress;
};

/// The inputs with logits of only the last position, if the target is there and the model supports it; the
/// target's position is then -1. Logits take most of a small model's time.
ModelInputs answering_inputs(const Model& model, const ModelInputs& inputs, LogitTarget& target);

/// Makes the interventions of one cell.
using CellInterventions = std::function<std::vector<Intervention>(const Site& site, std::int64_t column)>;

/// measure() of the target under the interventions of each cell: [L, columns], float64, by one forward pass
/// each. A column is a head if options.heads is set, else a position.
at::Tensor sweep(Model& model, const ModelInputs& inputs, const SweepOptions& options, std::int64_t columns,
                 const CellInterventions& interventions);

}  // namespace zoo::analysis
