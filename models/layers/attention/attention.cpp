#include "models/layers/attention/attention.h"

#include <tuple>

#include "models/layers/attention/efficient_attention.h"
#include "models/ops/linear.h"

namespace zoo {
namespace {

// [B, T, n D] -> [B, n, T, D]
at::Tensor split_heads(const at::Tensor& x, std::int64_t head_dim) {
  return x.unflatten(-1, {-1, head_dim}).transpose(1, 2);
}

// [B, H, T, D] -> [B, T, H D]
at::Tensor merge_heads(const at::Tensor& x) { return x.transpose(1, 2).flatten(2); }

}  // namespace

SelfAttentionImpl::SelfAttentionImpl(const TransformerConfig& config)
    : config_(config),
      scale_(config.position == PositionKind::kDisentangled ? config.score_scale() : config.attention_scale) {
  const std::int64_t head_dim = config.head_size();
  const std::int64_t width = config.num_heads * head_dim, kv_width = config.kv_heads() * head_dim;
  qkv = register_module("qkv", Linear(config.hidden_size, width + 2 * kv_width, config.qkv_bias));
  out = register_module("out", Linear(width, config.hidden_size, config.attention_output_bias));
  if (config.query_key_norm != QueryKeyNorm::kNone) {
    const bool per_head = config.query_key_norm == QueryKeyNorm::kPerHead;
    const auto norm = [&](std::int64_t size) {
      return Norm(config.norm, per_head ? head_dim : size, config.layer_norm_eps, config.norm_bias);
    };
    query_norm = register_module("query_norm", norm(width));
    key_norm = register_module("key_norm", norm(kv_width));
  }
  if (config.attention == AttentionKind::kLinformer) {
    const auto projection = [&] {
      return Linear(config.max_positions, config.attention_projection, /*with_bias=*/false);
    };
    key_projection = register_module("key_projection", projection());
    value_projection = register_module("value_projection", projection());
  }
  if (config.has_t5_buckets() && config.bucket_tables == BucketTables::kPerLayer)
    position_bias = register_module("position_bias", Embedding(config.relative_buckets, config.num_heads));
  if (config.position == PositionKind::kShaw) {
    const std::int64_t distances = 2 * config.relative_max_distance + 1;
    relative_keys = register_module("relative_keys", Embedding(distances, head_dim));
    relative_values = register_module("relative_values", Embedding(distances, head_dim));
  }
}

AttentionOptions SelfAttentionImpl::options_for(const SelfAttentionContext& context, const at::Tensor& q,
                                                const at::Tensor& k) const {
  AttentionOptions options{.dropout = is_training() ? config_.attention_dropout : 0.0,
                           .scale = scale_,
                           .softcap = config_.attention_softcap,
                           .need_weights = context.weights != nullptr};
  if (relative_keys) {
    const std::int64_t farthest = relative_keys->weight.size(0) / 2;
    const at::Tensor distances = relative_distances(q.size(2), k.size(2), q.device());
    const at::Tensor rows = distances.clamp(-farthest, farthest) + farthest;
    options.relative_keys = relative_keys->forward(rows);
    options.relative_values = relative_values->forward(rows);
  }
  return options;
}

// [B, T, n D] -> [B, n, T, D]
at::Tensor SelfAttentionImpl::normed_heads(const at::Tensor& x, const Norm& norm) const {
  switch (config_.query_key_norm) {
    case QueryKeyNorm::kPerHead:
      return norm->forward(x.unflatten(-1, {-1, config_.head_size()})).transpose(1, 2);
    case QueryKeyNorm::kWhole: return split_heads(norm->forward(x), config_.head_size());
    default: return split_heads(x, config_.head_size());
  }
}

// The mask, with the scores of distances added to its bias.
AttentionMask SelfAttentionImpl::with_distances(const at::Tensor& q, const at::Tensor& k,
                                                const SelfAttentionContext& context) const {
  const Distances& distances = context.distances;
  if (!distances.vectors.defined()) return context.mask;
  const at::Tensor vectors =
      ops::dropout(distances.vectors, is_training() ? config_.attention_output_dropout() : 0.0);
  const at::Tensor heads = qkv->forward(vectors).unflatten(-1, {3 * config_.num_heads, config_.head_size()});
  const auto projected = heads.transpose(0, 1).chunk(3);
  at::Tensor scores = disentangled_scores(q, k, projected[0], projected[1], distances.rows, scale_);
  if (distances.padding.defined()) scores = scores.masked_fill(distances.padding, 0.0);
  return with_bias(context.mask, scores);
}

at::Tensor SelfAttentionImpl::forward(const at::Tensor& x, const SelfAttentionContext& context,
                                      const at::Tensor& add_to) {
  const auto projected = qkv(x).split_with_sizes(config_.query_key_value_rows(), -1);
  at::Tensor q = normed_heads(projected[0], query_norm);
  at::Tensor k = normed_heads(projected[1], key_norm);
  at::Tensor v = split_heads(projected[2], config_.head_size());
  at::Tensor unrotated_q, unrotated_k;
  if (context.rotary != nullptr) {
    if (context.hook != nullptr) std::tie(unrotated_q, unrotated_k) = std::pair(q, k);
    q = context.rotary->rotate(q);
    k = context.rotary->rotate(k);
  }
  if (context.distances.padding.defined()) q = q.masked_fill(context.distances.padding, 0.0);
  if (context.cache != nullptr) {
    auto seen = context.cache->append(context.layer, k, v);
    k = std::move(seen.keys);
    v = std::move(seen.values);
  }
  AttentionOutput attended = attend({q, k, v, {}, {}, unrotated_q, unrotated_k}, context);
  if (context.hook != nullptr)
    attended.output = context.hook->heads(LayerPart::kAttention, std::move(attended.output));
  if (context.weights != nullptr) *context.weights = std::move(attended.weights);
  if (context.heads != nullptr) *context.heads = {v, attended.output};
  const double dropout = is_training() ? config_.attention_output_dropout() : 0.0;
  return out(merge_heads(attended.output), ops::Residual{.add_to = add_to, .dropout = dropout});
}

AttentionOutput SelfAttentionImpl::attend(AttentionInputs inputs, const SelfAttentionContext& context) const {
  const at::Tensor &q = inputs.queries, &k = inputs.keys, &v = inputs.values;
  if (config_.attention == AttentionKind::kFull) {
    inputs.mask = with_distances(q, k, context);
    inputs.options = options_for(context, q, k);
    if (context.hook != nullptr) context.hook->attention(LayerPart::kAttention, inputs);
    return ops::scaled_dot_product_attention(q, k, v, inputs.mask, inputs.options);
  }
  const EfficientAttentionOptions options{.kind = config_.attention,
                                          .window = config_.sparse_window,
                                          .causal = context.mask.causal,
                                          .key_mask = context.mask.key_mask,
                                          .dropout = is_training() ? config_.attention_dropout : 0.0,
                                          .scale = scale_,
                                          .need_weights = context.weights != nullptr};
  const std::int64_t group = config_.num_heads / config_.kv_heads();
  const at::Tensor keys = group == 1 ? k : k.repeat_interleave(group, 1);
  const at::Tensor values = group == 1 ? v : v.repeat_interleave(group, 1);
  if (config_.attention == AttentionKind::kLinear) return linear_attention(q, keys, values, options);
  if (config_.attention != AttentionKind::kLinformer) return sparse_attention(q, keys, values, options);
  return linformer_attention(q, keys, values, key_projection->adapted_weight(),
                             value_projection->adapted_weight(), options);
}

CrossAttentionImpl::CrossAttentionImpl(const TransformerConfig& config) : config_(config) {
  const std::int64_t head_dim = config.head_size(), width = config.num_heads * head_dim;
  q = register_module("q", Linear(config.hidden_size, width, config.qkv_bias));
  kv = register_module("kv", Linear(config.hidden_size, 2 * config.kv_heads() * head_dim, config.qkv_bias));
  out = register_module("out", Linear(width, config.hidden_size, config.attention_output_bias));
}

KeyValueCache::View CrossAttentionImpl::keys_and_values(const CrossAttentionContext& context) {
  if (context.cache != nullptr) {
    const KeyValueCache::View& known = context.cache->memory(context.layer);
    if (known.keys.defined()) return known;
  }
  const auto halves = kv(context.memory).chunk(2, -1);
  const std::int64_t head_dim = config_.head_size();
  KeyValueCache::View view{split_heads(halves[0], head_dim), split_heads(halves[1], head_dim)};
  if (context.cache != nullptr) context.cache->memory(context.layer) = view;
  return view;
}

at::Tensor CrossAttentionImpl::forward(const at::Tensor& x, const CrossAttentionContext& context,
                                       const at::Tensor& add_to) {
  const KeyValueCache::View seen = keys_and_values(context);
  const AttentionOptions options{.dropout = is_training() ? config_.attention_dropout : 0.0,
                                 .scale = config_.attention_scale,
                                 .need_weights = context.weights != nullptr};
  const AttentionInputs in{split_heads(q(x), config_.head_size()), seen.keys, seen.values, context.mask,
                           options};
  if (context.hook != nullptr) context.hook->attention(LayerPart::kCrossAttention, in);
  AttentionOutput attended =
      ops::scaled_dot_product_attention(in.queries, in.keys, in.values, in.mask, options);
  if (context.hook != nullptr)
    attended.output = context.hook->heads(LayerPart::kCrossAttention, std::move(attended.output));
  if (context.weights != nullptr) *context.weights = std::move(attended.weights);
  const double dropout = is_training() ? config_.attention_output_dropout() : 0.0;
  return out(merge_heads(attended.output), ops::Residual{.add_to = add_to, .dropout = dropout});
}

}  // namespace zoo
