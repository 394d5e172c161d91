#pragma once

#include "models/layers/block.h"
#include "models/script/script_part.h"

namespace zoo::script {

// The layers of models/layers as TorchScript: each part holds the module's weights under the same names, and
// its text computes the same as the module's forward in evaluation mode.

/// The expression of activate() for the variable `x`.
std::string activation_source(Activation activation, const std::string& x);

/// forward(x) -> y
ScriptPart linear_part(const LinearImpl& linear);
ScriptPart linear_part(const at::Tensor& weight, const at::Tensor& bias);

/// forward(ids) -> rows. Its weight is the table.
ScriptPart embedding_part(const EmbeddingImpl& embedding);

/// forward(x) -> y
ScriptPart norm_part(const NormImpl& norm, const TransformerConfig& config);

/// forward(x) -> y
ScriptPart feed_forward_part(const FeedForwardImpl& feed_forward, const TransformerConfig& config);
ScriptPart experts_part(const ExpertsImpl& experts, const TransformerConfig& config);

}  // namespace zoo::script
