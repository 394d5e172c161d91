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

/// What keeps the packed kernels from running the model, in words for a message; empty if they run it.
std::string lacking_kernels(const Model& model);

/// Lets the model's stacks compute from packed weights, without the positions that attention_mask hides,
/// where they give zeros. Embeddings and head stay modules. The model then refuses gradients, a cache, hidden
/// states, attentions and interventions. With options.release its weights are gone; those that it lacks
/// (options.stored) and that stay in modules are loaded. Throws c10::Error with lacking_kernels(model).
void pack_stacks(Model& model, const inference::PackOptions& options);

}  // namespace zoo
