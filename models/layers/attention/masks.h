#pragma once

#include <ATen/core/Tensor.h>

namespace zoo {

/// Attention mask of one forward pass, shared by its layers.
struct AttentionMask {
  /// Query t sees only keys 0 … t and `bias` adds nothing: the kernel's causal path runs without a tensor.
  bool causal = false;
  /// [B or 1, H or 1, T, S], ADDED to the scores: 0 keeps, -inf hides. Undefined: nothing to add.
  at::Tensor bias;
  /// [B or 1, 1, T, 1], true where a query sees no key; its output is zero. Undefined: no such row.
  /// In those rows `bias` hides nothing, so that no softmax gets a row of only -inf.
  at::Tensor hidden_rows;
  /// [B, S] bool, true where a key is visible, for attentions that add no bias (AttentionKind other than
  /// kFull). When `causal`, the queries are the last positions of the keys. Undefined: every key.
  at::Tensor key_mask;
};

/// Lengths of one attention: `queries` (T) are the last of `keys` (S) positions when a cache holds the
/// others.
struct MaskShape {
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  bool causal = false;
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
