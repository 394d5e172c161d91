#pragma once

#include "models/layers/key_value_cache.h"
#include "models/layers/linear.h"
#include "models/layers/masks.h"
#include "models/layers/positions.h"
#include "models/layers/transformer_config.h"

namespace zoo {

struct AttentionOptions {
  double dropout = 0.0;  // on the attention weights, in [0, 1)
  double scale = 0.0;    // of the scores; 0: 1 / sqrt(D)
  bool need_weights = false;
  /// What is added to key s and value s as query t sees them (Shaw et al., 2018): [T, S, D], both or none.
  at::Tensor relative_keys, relative_values;
};

struct AttentionOutput {
  at::Tensor output;   // [B, H, T, D] of scaled_dot_product_attention, [B, T, C] of a module
  at::Tensor weights;  // [B, H, T, S], only when asked for
};

/// softmax(q k^T scale + bias) v (Vaswani et al., 2017, section 3.2.1). q [B, H, T, D], k and v [B, Hkv, S,
/// D] with H a multiple of Hkv. A row whose keys are all hidden gives zeros, in the output and in the
/// weights. The fused kernel runs unless the weights are asked for or keys are relative.
AttentionOutput scaled_dot_product_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                             const AttentionMask& mask, const AttentionOptions& options);

/// What one call of a self-attention may use besides x.
struct SelfAttentionContext {
  AttentionMask mask;
  const RotaryTable* rotary = nullptr;
  KeyValueCache* cache = nullptr;
  std::int64_t layer = 0;  // whose part of the cache
  bool need_weights = false;
};

/// Multi-head self-attention (Vaswani et al., 2017, section 3.2.2) with grouped key/value heads (Ainslie et
/// al., 2023). x [B, T, C] to [B, T, C]. One projection makes queries, keys and values: qkv.weight [(H + 2
/// Hkv) D, C]. With Shaw et al.'s (2018) positions, tables of 2 k + 1 distances, k = relative_max_distance,
/// serve all heads.
class SelfAttentionImpl : public torch::nn::Module {
 public:
  explicit SelfAttentionImpl(const TransformerConfig& config);

  AttentionOutput forward(const at::Tensor& x, const SelfAttentionContext& context);

  Linear qkv{nullptr}, out{nullptr};
  Embedding relative_keys{nullptr}, relative_values{nullptr};  // [2 k + 1, D]; empty unless kShaw

 private:
  AttentionOptions options_for(const SelfAttentionContext& context, const at::Tensor& q,
                               const at::Tensor& k) const;

  /// Causal over the whole sequence and nothing else: what causal_self_attention does.
  bool is_plain(const SelfAttentionContext& context) const;

  std::int64_t num_heads_, num_kv_heads_, head_dim_;
  double dropout_, scale_;
};
TORCH_MODULE(SelfAttention);

/// What one call of a cross-attention may use besides x.
struct CrossAttentionContext {
  at::Tensor memory;  // [B, S, C]; not read when the cache holds its keys and values
  AttentionMask mask;
  KeyValueCache* cache = nullptr;
  std::int64_t layer = 0;  // whose part of the cache
  bool need_weights = false;
};

/// Multi-head attention from x [B, T, C] to another sequence, memory [B, S, C]: queries from x, keys and
/// values from memory. Returns [B, T, C].
class CrossAttentionImpl : public torch::nn::Module {
 public:
  explicit CrossAttentionImpl(const TransformerConfig& config);

  AttentionOutput forward(const at::Tensor& x, const CrossAttentionContext& context);

  Linear q{nullptr}, kv{nullptr}, out{nullptr};

 private:
  KeyValueCache::View keys_and_values(const CrossAttentionContext& context);

  std::int64_t num_heads_, num_kv_heads_, head_dim_;
  double dropout_, scale_;
};
TORCH_MODULE(CrossAttention);

}  // namespace zoo
