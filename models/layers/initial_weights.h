#pragma once

#include <ATen/core/Generator.h>

#include "models/layers/stack.h"

namespace zoo {

// Fresh weights, drawn in the order of the modules. Norms are one and zero; biases and the row of padding
// zero.

/// Of any module: projections and tables from normal(0, std).
void initialize(torch::nn::Module& module, double std, const at::Generator& generator);

/// Of a stack: projections by config.initial_weights.
void initialize(TransformerStackImpl& stack, const TransformerConfig& config, const at::Generator& generator);

}  // namespace zoo
