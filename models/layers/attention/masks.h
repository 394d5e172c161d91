#pragma once

/// @file
/// Use:
///
///     const zoo::MaskShape shape{.queries = 8, .keys = 8, .causal = true};
///     const zoo::AttentionMask mask = zoo::make_attention_mask(attention_mask, shape, at::kFloat, at::kCPU);

#include "models/ops/attention.h"

namespace zoo {

/// Lengths of one attention: `queries` (T) are the last of `keys` (S) positions when a cache holds the
/// others.
struct MaskShape {
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  bool causal = false;
  std::int64_t window = 0;  // TransformerConfig::sliding_window; 0: none
};

/// Makes the mask for `attention_mask` [B, S] (1 keeps, 0 hides; any integer or bool type); undefined means
/// no padding. `dtype` is that of the queries.
AttentionMask make_attention_mask(const at::Tensor& attention_mask, const MaskShape& shape,
                                  at::ScalarType dtype, const at::Device& device);

/// Adds `bias` [B or 1, H, T, S], e.g. of relative positions, to the mask's bias.
AttentionMask with_bias(AttentionMask mask, const at::Tensor& bias);

/// Position ids that count only kept tokens, for left padding in generation: [B, S], 0 for the first kept
/// token and for hidden ones before it.
at::Tensor positions_of(const at::Tensor& attention_mask);

}  // namespace zoo
