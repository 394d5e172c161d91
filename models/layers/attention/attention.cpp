#include "models/layers/attention/attention.h"

#include <cmath>
#include <limits>

#include <ATen/ops/einsum.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>

#include "models/kernels/attention/short_attention.h"
#include "models/ops/dropout.h"
#include "models/layers/attention/efficient_attention.h"
#include "models/layers/attention/relative_positions.h"

namespace zoo {
namespace {

// [B, T, n D] -> [B, n, T, D]
at::Tensor split_heads(const at::Tensor& x, std::int64_t head_dim) {
  return x.unflatten(-1, {-1, head_dim}).transpose(1, 2);
}

// [B, H, T, D] -> [B, T, H D]
at::Tensor merge_heads(const at::Tensor& x) {
  return x.transpose(1, 2).flatten(2);
}

at::Tensor explicit_weights(const at::Tensor& q, const at::Tensor& k, const AttentionMask& mask,
                            const AttentionOptions& options) {
  at::Tensor scores = at::matmul(q, k.transpose(-2, -1));  // [B, H, T, S]
  if (options.relative_keys.defined())
    scores = scores + at::einsum("bhtd,tsd->bhts", {q, options.relative_keys});
  scores = scores * options.scale;
  if (mask.causal) {
    const at::Tensor future = at::ones_like(scores.select(0, 0).select(0, 0), at::kBool).triu(1);
    scores = scores.masked_fill(future, -std::numeric_limits<double>::infinity());
  }
  if (mask.bias.defined()) scores = scores + mask.bias;
  return at::softmax(scores, -1, at::kFloat).to(q.scalar_type());
}

// Computes the weights explicitly, to return them.
AttentionOutput explicit_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                   const AttentionMask& mask, const AttentionOptions& options) {
  AttentionOutput result;
  const std::int64_t group = q.size(1) / k.size(1);
  const auto repeated = [&](const at::Tensor& x) { return group == 1 ? x : x.repeat_interleave(group, 1); };
  result.weights = explicit_weights(q, repeated(k), mask, options);
  if (mask.hidden_rows.defined()) result.weights = result.weights.masked_fill(mask.hidden_rows, 0.0);
  const at::Tensor dropped = zoo::dropout(result.weights, options.dropout, /*training=*/true);
  result.output = at::matmul(dropped, repeated(v));
  if (options.relative_values.defined())
    result.output = result.output + at::einsum("bhts,tsd->bhtd", {dropped, options.relative_values});
  return result;
}

}  // namespace

AttentionOutput scaled_dot_product_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                             const AttentionMask& mask, const AttentionOptions& given) {
  AttentionOptions options = given;
  if (options.scale == 0) options.scale = 1.0 / std::sqrt(static_cast<double>(q.size(-1)));
  AttentionOutput result;
  // LibTorch's attention draws dropout on a single CPU thread.
  const bool drops = options.dropout > 0 && q.is_cpu();
  if (options.need_weights || options.relative_keys.defined() || drops) {
    result = explicit_attention(q, k, v, mask, options);
    if (!options.need_weights) result.weights = at::Tensor();
  } else {
    const auto bias = mask.bias.defined() ? std::optional<at::Tensor>(mask.bias) : std::nullopt;
    result.output = at::scaled_dot_product_attention(q, k, v, bias, options.dropout, mask.causal,
                                                     options.scale, /*enable_gqa=*/q.size(1) != k.size(1));
  }
  if (mask.hidden_rows.defined()) result.output = result.output.masked_fill(mask.hidden_rows, 0.0);
  return result;
}

SelfAttentionImpl::SelfAttentionImpl(const TransformerConfig& config)
    : num_heads_(config.num_heads),
      num_kv_heads_(config.kv_heads()),
      head_dim_(config.head_size()),
      kind_(config.attention),
      window_(config.attention_window),
      dropout_(config.attention_dropout),
      scale_(config.attention_scale) {
  const std::int64_t width = num_heads_ * head_dim_;
  const std::int64_t kv_width = num_kv_heads_ * head_dim_;
  qkv = register_module("qkv", Linear(config.hidden_size, width + 2 * kv_width, config.qkv_bias));
  out = register_module("out", Linear(width, config.hidden_size, config.attention_output_bias));
  if (kind_ == AttentionKind::kLinformer) {
    const auto projection = [&] {
      return Linear(config.max_positions, config.attention_projection, /*with_bias=*/false);
    };
    key_projection = register_module("key_projection", projection());
    value_projection = register_module("value_projection", projection());
  }
  if (config.position == PositionKind::kShaw) {
    const std::int64_t distances = 2 * config.relative_max_distance + 1;
    relative_keys = register_module("relative_keys", Embedding(distances, head_dim_));
    relative_values = register_module("relative_values", Embedding(distances, head_dim_));
  }
}

AttentionOptions SelfAttentionImpl::options_for(const SelfAttentionContext& context, const at::Tensor& q,
                                                const at::Tensor& k) const {
  AttentionOptions options{
      .dropout = is_training() ? dropout_ : 0.0, .scale = scale_, .need_weights = context.need_weights};
  if (relative_keys) {
    const std::int64_t farthest = relative_keys->weight.size(0) / 2;
    const at::Tensor distances = relative_distances(q.size(2), k.size(2), q.device());
    const at::Tensor rows = distances.clamp(-farthest, farthest) + farthest;
    options.relative_keys = relative_keys->forward(rows);
    options.relative_values = relative_values->forward(rows);
  }
  return options;
}

AttentionOutput SelfAttentionImpl::forward(const at::Tensor& x, const SelfAttentionContext& context,
                                           const at::Tensor& residual) {
  const std::int64_t width = num_heads_ * head_dim_, kv_width = num_kv_heads_ * head_dim_;
  const at::Tensor all = qkv(x);
  if (is_plain(context) && has_short_attention(all)) {
    return {out(causal_self_attention(all, num_heads_), residual), at::Tensor()};
  }
  const auto projected = all.split_with_sizes({width, kv_width, kv_width}, -1);
  at::Tensor q = split_heads(projected[0], head_dim_);
  at::Tensor k = split_heads(projected[1], head_dim_);
  at::Tensor v = split_heads(projected[2], head_dim_);
  if (context.rotary != nullptr) {
    q = context.rotary->rotate(q);
    k = context.rotary->rotate(k);
  }
  if (context.cache != nullptr) {
    auto seen = context.cache->append(context.layer, k, v);
    k = std::move(seen.keys);
    v = std::move(seen.values);
  }
  AttentionOutput result = attend(q, k, v, context);
  if (records != nullptr) records->push_back({v, result.output});
  result.output = out(merge_heads(result.output), residual);
  return result;
}

AttentionOutput SelfAttentionImpl::attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                          const SelfAttentionContext& context) const {
  if (kind_ == AttentionKind::kFull)
    return scaled_dot_product_attention(q, k, v, context.mask, options_for(context, q, k));
  const EfficientAttentionOptions options{.kind = kind_,
                                          .window = window_,
                                          .causal = context.mask.causal,
                                          .key_mask = context.mask.key_mask,
                                          .dropout = is_training() ? dropout_ : 0.0,
                                          .scale = scale_,
                                          .need_weights = context.need_weights};
  const std::int64_t group = num_heads_ / num_kv_heads_;
  const at::Tensor keys = group == 1 ? k : k.repeat_interleave(group, 1);
  const at::Tensor values = group == 1 ? v : v.repeat_interleave(group, 1);
  if (kind_ == AttentionKind::kLinear) return linear_attention(q, keys, values, options);
  if (kind_ != AttentionKind::kLinformer) return sparse_attention(q, keys, values, options);
  return linformer_attention(q, keys, values, key_projection->weight, value_projection->weight, options);
}

bool SelfAttentionImpl::is_plain(const SelfAttentionContext& context) const {
  const bool drops = is_training() && dropout_ > 0;
  return context.mask.causal && context.rotary == nullptr && context.cache == nullptr &&
         !context.need_weights && !drops && num_kv_heads_ == num_heads_ && scale_ == 0 && !relative_keys &&
         kind_ == AttentionKind::kFull && records == nullptr;
}

CrossAttentionImpl::CrossAttentionImpl(const TransformerConfig& config)
    : num_heads_(config.num_heads),
      num_kv_heads_(config.kv_heads()),
      head_dim_(config.head_size()),
      dropout_(config.attention_dropout),
      scale_(config.attention_scale) {
  const std::int64_t width = num_heads_ * head_dim_;
  q = register_module("q", Linear(config.hidden_size, width, config.qkv_bias));
  kv = register_module("kv", Linear(config.hidden_size, 2 * num_kv_heads_ * head_dim_, config.qkv_bias));
  out = register_module("out", Linear(width, config.hidden_size, config.attention_output_bias));
}

KeyValueCache::View CrossAttentionImpl::keys_and_values(const CrossAttentionContext& context) {
  if (context.cache != nullptr) {
    const KeyValueCache::View& known = context.cache->memory(context.layer);
    if (known.keys.defined()) return known;
  }
  const auto halves = kv(context.memory).chunk(2, -1);
  KeyValueCache::View view{split_heads(halves[0], head_dim_), split_heads(halves[1], head_dim_)};
  if (context.cache != nullptr) context.cache->memory(context.layer) = view;
  return view;
}

AttentionOutput CrossAttentionImpl::forward(const at::Tensor& x, const CrossAttentionContext& context,
                                            const at::Tensor& residual) {
  const KeyValueCache::View seen = keys_and_values(context);
  const AttentionOptions options{
      .dropout = is_training() ? dropout_ : 0.0, .scale = scale_, .need_weights = context.need_weights};
  AttentionOutput result = scaled_dot_product_attention(split_heads(q(x), head_dim_), seen.keys, seen.values,
                                                        context.mask, options);
  result.output = out(merge_heads(result.output), residual);
  return result;
}

}  // namespace zoo
