#pragma once

/// @file
/// Use:
///
///     const zoo::AttentionMask mask{.causal = true};
///     const auto [output, weights] =
///         zoo::ops::scaled_dot_product_attention(q, k, v, mask, {.need_weights = true});

#include <vector>

#include <ATen/core/Tensor.h>

namespace zoo {

/// Attention mask of one forward pass, shared by its layers.
struct AttentionMask {
  /// Query t sees only keys 0 … t and there is no `bias`: the kernel's causal path needs no mask tensor.
  bool causal = false;
  /// [B or 1, H or 1, T, S], ADDED to the scores: 0 keeps, -inf hides. Undefined: nothing to add.
  at::Tensor bias;
  /// [B or 1, 1, T, 1], true where a query sees no key; its output is zero. Undefined: no such row.
  /// In those rows `bias` hides nothing, so that no softmax gets a row of only -inf.
  at::Tensor hidden_rows;
  /// [B, S] bool, true where a key is visible, for attentions that add no bias (AttentionKind other than
  /// kFull). When `causal`, the queries are the last positions of the keys. Undefined: every key.
  at::Tensor key_mask;
  /// Lengths of the documents that rows of several hold one after another, all B T positions in order, each
  /// within a row: a query sees only keys of its own, at the distances that `bias` [1, H or 1, T, T] is for.
  /// Empty: a row is one.
  std::vector<std::int64_t> documents;
};

struct AttentionOptions {
  double dropout = 0.0;  // on the attention weights, in [0, 1)
  double scale = 0.0;    // factor of the scores; 0: 1 / sqrt(D)
  double softcap = 0.0;  // c of scores c tanh(s / c), before the mask; 0: none
  bool need_weights = false;
  /// Added to key s and value s for query t (Shaw et al., 2018): [T, S, D], both or none.
  at::Tensor relative_keys, relative_values;
};

struct AttentionOutput {
  at::Tensor output;   // [B, H, T, D]
  at::Tensor weights;  // [B, H, T, S], only when asked for
};

namespace ops {

/// softmax(q k^T scale + bias) v (Vaswani et al., 2017, section 3.2.1). q [B, H, T, D], k and v [B, Hkv, S,
/// D] with H a multiple of Hkv. A row whose keys are all hidden gives zeros, in output and weights. A fused
/// kernel runs unless the call asks for weights, keys are relative, scores have a softcap or dropout runs on
/// a CPU. Throws c10::Error for the weights of rows of several documents.
AttentionOutput scaled_dot_product_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                             const AttentionMask& mask, const AttentionOptions& options);

/// The logits [B, H, T, S] of that softmax. A hidden key has -inf, except in rows where every key is hidden.
at::Tensor attention_logits(const at::Tensor& q, const at::Tensor& k, const AttentionMask& mask,
                            const AttentionOptions& options);

/// Rotary positions (Su et al., 2021): turns the pairs (x[i], x[i + D / 2]) of heads [B, H, T, D] by the
/// angles of their tokens, whose cosines and sines are [T, D] or [B, 1, T, D], with equal halves.
at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

}  // namespace ops
}  // namespace zoo
