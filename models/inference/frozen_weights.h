#pragma once

#include <torch/nn/module.h>

#include "models/checkpoint/stored_weights.h"
#include "models/kernels/packed/packed_weight.h"

namespace zoo::inference {

/// Keeps the projections of a model's blocks in this format, read from `stored`, for training that changes
/// none of them but adds to them (QLoRA: Dettmers et al., 2023). Loads all other matrices. The numbers are
/// those of packed inference (kernels/packed/packed_weight.h). Not kBlocks.
/// Throws FieldError for a mixture of experts.
void freeze_projections(Model& model, const StoredWeights& stored, kernels::WeightType type);

std::int64_t frozen_bytes(const torch::nn::Module& module);

}  // namespace zoo::inference
