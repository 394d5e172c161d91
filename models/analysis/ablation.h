#pragma once

#include <vector>

#include "models/analysis/residual_stream.h"

namespace zoo::analysis {

/// What stands for the output of an ablated site. kZero: zeros; of a whole layer (LayerPart::kResidual) its
/// input. kMean: the site's mean over the sequence's positions in the pass without ablations, which removes
/// what differs between positions and keeps the rest.
enum class Ablation { kZero, kMean };

/// Interventions that switch the sites off at all positions. kMean runs the model once; it throws c10::Error
/// for a whole layer.
std::vector<Intervention> ablated(Model& model, const ModelInputs& inputs, const std::vector<Site>& sites,
                                  Ablation ablation);

}  // namespace zoo::analysis
