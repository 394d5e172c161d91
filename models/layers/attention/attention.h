#pragma once

/// @file
/// Use:
///
///     zoo::SelfAttention attention(config);
///     at::Tensor weights;  // [B, H, T, S]
///     const at::Tensor y = attention->forward(x, {.mask = {.causal = true}, .weights = &weights});

#include "models/layers/attention/disentangled.h"
#include "models/layers/attention/key_value_cache.h"
#include "models/layers/attention/masks.h"
#include "models/layers/attention/positions.h"
#include "models/layers/interventions.h"
#include "models/layers/linear.h"
#include "models/layers/norm.h"
#include "models/layers/transformer_config.h"

namespace zoo {

/// Inputs of one self-attention call besides x, and what it gives besides its result.
struct SelfAttentionContext {
  AttentionMask mask;
  const RotaryTable* rotary = nullptr;
  Distances distances;
  KeyValueCache* cache = nullptr;
  std::int64_t layer = 0;               // index in the cache
  at::Tensor* weights = nullptr;        // receives the attention weights [B, H, T, S]; null: not computed
  HeadRecord* heads = nullptr;          // receives the heads; null: not wanted
  const LayerHook* hook = nullptr;      // records and replaces the layer's outputs; null: neither
  at::Tensor* router_logits = nullptr;  // receives those of the layer's experts; null: not wanted
};

/// Multi-head self-attention (Vaswani et al., 2017, section 3.2.2) with grouped key/value heads (Ainslie et
/// al., 2023). x [B, T, C] to [B, T, C], added to `add_to` if given. One projection computes queries, keys
/// and values: qkv.weight [(H + 2 Hkv) D, C]. query_norm and key_norm act before the rotation. With Shaw et
/// al.'s (2018) positions, all heads share tables of distances up to k = relative_max_distance. For kinds
/// other than AttentionKind::kFull see efficient_attention.h; their mask has only causal and key_mask.
class SelfAttentionImpl : public torch::nn::Module {
 public:
  explicit SelfAttentionImpl(const TransformerConfig& config);

  at::Tensor forward(const at::Tensor& x, const SelfAttentionContext& context, const at::Tensor& add_to = {});

  Linear qkv{nullptr}, out{nullptr};
  Norm query_norm{nullptr}, key_norm{nullptr};                 // empty unless config.query_key_norm
  Linear key_projection{nullptr}, value_projection{nullptr};   // [projection, max_positions]; only kLinformer
  Embedding relative_keys{nullptr}, relative_values{nullptr};  // [2 k + 1, D]; empty unless kShaw
  Embedding position_bias{nullptr};  // [buckets, H], for the stack's mask; only BucketTables::kPerLayer

 private:
  AttentionOptions options_for(const SelfAttentionContext& context, const at::Tensor& q,
                               const at::Tensor& k) const;

  at::Tensor normed_heads(const at::Tensor& x, const Norm& norm) const;

  AttentionMask with_distances(const at::Tensor& q, const at::Tensor& k,
                               const SelfAttentionContext& context) const;

  AttentionOutput attend(AttentionInputs inputs, const SelfAttentionContext& context) const;

  TransformerConfig config_;
  double scale_;  // AttentionOptions::scale
};
TORCH_MODULE(SelfAttention);

/// Inputs of one cross-attention call besides x, and what it gives besides its result.
struct CrossAttentionContext {
  at::Tensor memory;  // [B, S, C]; not read when the cache holds its keys and values
  AttentionMask mask;
  KeyValueCache* cache = nullptr;
  std::int64_t layer = 0;           // index in the cache
  at::Tensor* weights = nullptr;    // receives the attention weights [B, H, T, S]; null: not computed
  const LayerHook* hook = nullptr;  // see SelfAttentionContext
};

/// Multi-head attention from x [B, T, C] to another sequence, memory [B, S, C]: queries from x, keys and
/// values from memory. Returns [B, T, C], added to `add_to` if given.
class CrossAttentionImpl : public torch::nn::Module {
 public:
  explicit CrossAttentionImpl(const TransformerConfig& config);

  at::Tensor forward(const at::Tensor& x, const CrossAttentionContext& context,
                     const at::Tensor& add_to = {});

  Linear q{nullptr}, kv{nullptr}, out{nullptr};

 private:
  KeyValueCache::View keys_and_values(const CrossAttentionContext& context);

  TransformerConfig config_;
};
TORCH_MODULE(CrossAttention);

}  // namespace zoo
