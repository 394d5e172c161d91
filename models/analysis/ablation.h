#pragma once

/// @file
/// Use:
///
///     const zoo::analysis::SweepOptions heads{
///         .part = zoo::LayerPart::kAttention, .heads = true, .target = {.token = 42}};
///     const auto effects =
///         zoo::analysis::ablation_sweep(model, inputs, heads, zoo::analysis::Ablation::kZero);
///     std::cout << effects.whole << "\n" << effects.ablated << "\n";  // [L, H], each head off by itself

#include <vector>

#include "models/analysis/sweep.h"

namespace zoo::analysis {

/// The value that replaces the output of an ablated site. kZero: zeros; for a layer (LayerPart::kResidual),
/// its input. kMean: the site's mean over the sequence's positions in the pass without ablations, which
/// removes only the differences between positions.
enum class Ablation { kZero, kMean };

/// Interventions that switch the sites off at all positions. kMean runs the model once; it throws c10::Error
/// for a layer.
std::vector<Intervention> ablated(Model& model, const ModelInputs& inputs, const std::vector<Site>& sites,
                                  Ablation ablation);

/// measure() of a sweep's target with each part of each layer, or each of its heads, ablated separately.
struct AblationEffects {
  double whole = 0;    // without ablations
  at::Tensor ablated;  // [L, 1] or [L, H], float64
};
AblationEffects ablation_sweep(Model& model, const ModelInputs& inputs, const SweepOptions& options,
                               Ablation ablation);

}  // namespace zoo::analysis
