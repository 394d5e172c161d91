#pragma once

#include "models/layers/transformer_config.h"
#include "models/ops/attention.h"

namespace zoo {

// Attentions that do not compare every query with every key. q [B, H, T, D], k and v [B, H, S, D], the
// queries being the last T of S positions. Returns [B, H, T, D]; a row whose keys are all hidden gives zeros.

struct EfficientAttentionOptions {
  AttentionKind kind = AttentionKind::kSlidingWindow;
  std::int64_t window = 0;  // TransformerConfig::sparse_window
  bool causal = false;
  at::Tensor key_mask;   // [B, S] bool, true where a key may be seen; undefined: every key
  double dropout = 0.0;  // on the weights, in [0, 1)
  double scale = 0.0;    // factor of the scores; 0: 1 / sqrt(D)
  bool need_weights = false;
};

/// Visible keys of each query, [T, S] bool. kSlidingWindow (Beltagy et al., 2020, section 3.1): keys at most
/// `window` positions away. kStridedSparse (Child et al., 2019, section 4.2, both patterns in every head):
/// keys less than `window` positions away, and every `window`-th. If causal, only keys up to the query.
at::Tensor visible_keys(const EfficientAttentionOptions& options, std::int64_t queries, std::int64_t keys,
                        const at::Device& device);

/// softmax over the visible keys only: time and memory O(T window), with strides O(T (window + T / window)).
/// Computes and masks all scores if weights are asked for or queries are fewer than keys.
AttentionOutput sparse_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                 const EfficientAttentionOptions& options);

/// Weights proportional to phi(q) . phi(k), phi(x) = elu(x) + 1 (Katharopoulos et al., 2020, section 3.2):
/// time O(T D^2), by sums over the keys. Scores are not scaled and weights get no dropout.
AttentionOutput linear_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                 const EfficientAttentionOptions& options);

/// Full attention to `rows` linear mixtures of the keys and values (Wang et al., 2020, section 4): time O(T
/// rows). Uses the first S columns of key_projection and value_projection [rows, at least S]; weights [B, H,
/// T, rows]. Cannot be causal: each mixture holds every position.
AttentionOutput linformer_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                    const at::Tensor& key_projection, const at::Tensor& value_projection,
                                    const EfficientAttentionOptions& options);

}  // namespace zoo
