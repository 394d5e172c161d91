#pragma once

#include <ATen/core/Generator.h>

#include "models/layers/stack.h"

namespace zoo {

// Initialisation of new weights, drawn in module order. Norms are one and zero; biases and the padding row
// are zero.

/// Any module: draws projections and tables from normal(0, std).
void initialize(torch::nn::Module& module, double std, const at::Generator& generator);

/// A stack: draws projections as config.initial_weights says.
void initialize(TransformerStackImpl& stack, const TransformerConfig& config, const at::Generator& generator);

}  // namespace zoo
