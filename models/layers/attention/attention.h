#pragma once

#include <vector>

#include "models/layers/attention/attention_output.h"
#include "models/layers/attention/key_value_cache.h"
#include "models/layers/linear.h"
#include "models/layers/attention/masks.h"
#include "models/layers/attention/positions.h"
#include "models/layers/transformer_config.h"

namespace zoo {

struct AttentionOptions {
  double dropout = 0.0;  // on the attention weights, in [0, 1)
  double scale = 0.0;    // factor of the scores; 0: 1 / sqrt(D)
  bool need_weights = false;
  /// Added to key s and value s for query t (Shaw et al., 2018): [T, S, D], both or none.
  at::Tensor relative_keys, relative_values;
};

/// softmax(q k^T scale + bias) v (Vaswani et al., 2017, section 3.2.1). q [B, H, T, D], k and v [B, Hkv, S,
/// D] with H a multiple of Hkv. A row whose keys are all hidden gives zeros, in output and weights. The fused
/// kernel runs unless weights are asked for, keys are relative or dropout runs on a CPU.
AttentionOutput scaled_dot_product_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                             const AttentionMask& mask, const AttentionOptions& options);

/// Inputs of one self-attention call besides x.
struct SelfAttentionContext {
  AttentionMask mask;
  const RotaryTable* rotary = nullptr;
  KeyValueCache* cache = nullptr;
  std::int64_t layer = 0;  // index in the cache
  bool need_weights = false;
};

/// Values [B, Hkv, T, D] and outputs [B, H, T, D] of one call's heads, for a loss on them.
struct HeadRecord {
  at::Tensor values, outputs;
};

/// Multi-head self-attention (Vaswani et al., 2017, section 3.2.2) with grouped key/value heads (Ainslie et
/// al., 2023). x [B, T, C] to [B, T, C], plus `residual` if given. One projection computes queries, keys and
/// values: qkv.weight [(H + 2 Hkv) D, C]. With Shaw et al.'s (2018) positions, all heads share tables of 2 k
/// + 1 distances, k = relative_max_distance. For kinds other than AttentionKind::kFull see
/// efficient_attention.h; their mask has only causal and key_mask.
class SelfAttentionImpl : public torch::nn::Module {
 public:
  explicit SelfAttentionImpl(const TransformerConfig& config);

  AttentionOutput forward(const at::Tensor& x, const SelfAttentionContext& context,
                          const at::Tensor& residual = {});

  Linear qkv{nullptr}, out{nullptr};
  Linear key_projection{nullptr}, value_projection{nullptr};   // [projection, max_positions]; only kLinformer
  Embedding relative_keys{nullptr}, relative_values{nullptr};  // [2 k + 1, D]; empty unless kShaw
  std::vector<HeadRecord>* records = nullptr;                  // calls append their heads; null: nowhere

 private:
  AttentionOptions options_for(const SelfAttentionContext& context, const at::Tensor& q,
                               const at::Tensor& k) const;

  AttentionOutput attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         const SelfAttentionContext& context) const;

  /// True if the call is only causal, over the whole sequence: causal_self_attention can run.
  bool is_plain(const SelfAttentionContext& context) const;

  std::int64_t num_heads_, num_kv_heads_, head_dim_;
  AttentionKind kind_;
  std::int64_t window_;
  double dropout_, scale_;
};
TORCH_MODULE(SelfAttention);

/// Inputs of one cross-attention call besides x.
struct CrossAttentionContext {
  at::Tensor memory;  // [B, S, C]; not read when the cache holds its keys and values
  AttentionMask mask;
  KeyValueCache* cache = nullptr;
  std::int64_t layer = 0;  // index in the cache
  bool need_weights = false;
};

/// Multi-head attention from x [B, T, C] to another sequence, memory [B, S, C]: queries from x, keys and
/// values from memory. Returns [B, T, C], plus `residual` if given.
class CrossAttentionImpl : public torch::nn::Module {
 public:
  explicit CrossAttentionImpl(const TransformerConfig& config);

  AttentionOutput forward(const at::Tensor& x, const CrossAttentionContext& context,
                          const at::Tensor& residual = {});

  Linear q{nullptr}, kv{nullptr}, out{nullptr};

 private:
  KeyValueCache::View keys_and_values(const CrossAttentionContext& context);

  std::int64_t num_heads_, num_kv_heads_, head_dim_;
  double dropout_, scale_;
};
TORCH_MODULE(CrossAttention);

}  // namespace zoo
