#pragma once

/// @file
/// Use:
///
///     const at::NoGradGuard no_grad;
///     zoo::pack_stacks(model, {.weights = zoo::inference::WeightType::kInt8});
///     const zoo::ModelOutput output = model.forward({.input_ids = ids_of_rows, .attention_mask = mask});

#include <string>

#include "models/inference/packed_linear.h"
#include "models/model.h"

namespace zoo {

/// Why the packed kernels cannot run the model, in words for a message; empty if they can.
std::string lacking_kernels(const Model& model);

/// Lets the model's stacks compute from packed weights. They skip the positions that attention_mask hides,
/// and return zeros there. Embeddings and head stay modules. The model then refuses gradients, a cache,
/// hidden states, attentions and interventions. Threads may share it: passes take turns. options.release
/// removes the original weights of the stacks; with options.stored, the weights of the remaining modules are
/// loaded. Throws c10::Error with lacking_kernels(model).
void pack_stacks(Model& model, const inference::PackOptions& options);

}  // namespace zoo
