#pragma once

/// @file
/// Use:
///
///     const zoo::ModelOutput output = model.forward({.input_ids = ids_of_rows, .output_attentions = true});
///     const at::Tensor rollout = zoo::analysis::attention_rollout(output.attentions);  // [L, B, T, T]

#include <vector>

#include <ATen/core/Tensor.h>

namespace zoo::analysis {

/// Attention rollout (Abnar and Zuidema, 2020, section 3): how much of each input position is in a position
/// after 1, … L layers, if only attention moves information. Each layer counts as half the mean of its heads
/// and half the residual connection, each row divided by its sum. `attentions`: [B, H, T, T] of each
/// self-attention layer. Returns [L, B, T, T], whose rows sum to 1. Throws c10::Error for other shapes.
at::Tensor attention_rollout(const std::vector<at::Tensor>& attentions);

}  // namespace zoo::analysis
