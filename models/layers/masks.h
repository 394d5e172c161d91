#pragma once

#include <ATen/core/Tensor.h>

namespace zoo {

/// What each query may see. Made once for a forward pass and shared by its layers.
struct AttentionMask {
  /// Query t sees keys 0 … t alone, and `bias` says nothing: the kernel's own causal path, no tensor needed.
  bool causal = false;
  /// [B or 1, H or 1, T, S], ADDED to the scores: 0 keeps, -inf hides. Undefined: nothing to add.
  at::Tensor bias;
  /// [B or 1, 1, T, 1], true where a query has no key to see; its output is zero. Undefined: no such row.
  /// In those rows `bias` hides nothing, so that no softmax meets a row of -inf only.
  at::Tensor hidden_rows;
  /// [B, S] bool, true where a key may be seen, for attentions that add no bias (AttentionKind other than
  /// kFull), whose queries are the last of the keys' positions when `causal`. Undefined: every key.
  at::Tensor key_mask;
};

/// The lengths of one attention: `queries` (T) are the last ones of `keys` (S) positions when a cache holds
/// the others.
struct MaskShape {
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  bool causal = false;
};

/// The mask for `attention_mask` [B, S] (1 keeps, 0 hides; any integer or bool type) or undefined for no
/// padding. `dtype` is that of the queries.
AttentionMask make_attention_mask(const at::Tensor& attention_mask, const MaskShape& shape,
                                  at::ScalarType dtype, const at::Device& device);

/// The mask with `bias` [B or 1, H, T, S], of relative positions say, added to the scores as well.
AttentionMask with_bias(AttentionMask mask, const at::Tensor& bias);

/// Positions that count kept tokens only, as for generation with left padding: [B, S], 0 for the first kept
/// token and for hidden ones before it.
at::Tensor positions_of(const at::Tensor& attention_mask);

}  // namespace zoo
