#pragma once

#include <functional>
#include <vector>

#include "models/analysis/logit_target.h"
#include "models/analysis/residual_stream.h"

namespace zoo::analysis {

/// The cells of a sweep: a part of each layer at one position at a time; or each head of it, at all chosen
/// positions together.
struct SweepOptions {
  Shape stack = Shape::kDecoder;
  LayerPart part = LayerPart::kResidual;
  bool heads = false;                   // of the part, an attention
  std::vector<std::int64_t> positions;  // in [0, T); empty: all
  LogitTarget target;                   // what is measured
  /// Called after each forward pass of the sweep; what it throws ends the sweep.
  std::function<void(std::int64_t done, std::int64_t total)> progress;
};

/// The inputs with logits of the last position alone, if the target is there and the model can; the target's
/// position is then -1. Most of a small model's time goes into logits.
ModelInputs answering_inputs(const Model& model, const ModelInputs& inputs, LogitTarget& target);

/// Makes the interventions of one cell.
using CellInterventions = std::function<std::vector<Intervention>(const Site& site, std::int64_t column)>;

/// measure() of the target under the interventions of each cell: [L, columns], float64, by one forward pass
/// each. A column is a head where options.heads says so.
at::Tensor sweep(Model& model, const ModelInputs& inputs, const SweepOptions& options, std::int64_t columns,
                 const CellInterventions& interventions);

}  // namespace zoo::analysis
