#pragma once

/// @file
/// Use:
///
///     const at::Tensor direction = zoo::analysis::steering_direction(*model, {polite}, {rude}, layer);
///     const zoo::Intervention change = zoo::analysis::steering(*model, direction, layer, /*strength=*/4);
///     zoo::ModuleDecoder decoder(*model, {change});

#include <vector>

#include "models/model.h"

namespace zoo::analysis {

/// What leads from one set of texts to another: the difference [C] of the means of the residual stream after
/// a layer, at the last token of each text (Rimsky et al., 2024, "Steering Llama 2 via Contrastive Activation
/// Addition"). Inputs of one row each. Throws c10::Error for an empty set and a layer that does not exist.
at::Tensor steering_direction(Model& model, const std::vector<ModelInputs>& toward,
                              const std::vector<ModelInputs>& away, std::int64_t layer);

/// Adds the direction times `strength` to the residual stream after the layer.
Intervention steering(const Model& model, const at::Tensor& direction, std::int64_t layer, double strength);

}  // namespace zoo::analysis
