#include "models/layers/block.h"

namespace zoo {

BlockImpl::BlockImpl(const TransformerConfig& config, std::int64_t layer)
    : placement_(config.norm_placement),
      order_(config.sublayer_order),
      residual_scale_(config.residual_scale) {
  if (layer > 0 || config.first_attention_norm)
    attention_norm = register_module("attention_norm", Norm(config));
  attention = register_module("attention", SelfAttention(config));
  if (config.cross_attention) {
    cross_attention_norm = register_module("cross_attention_norm", Norm(config));
    cross_attention = register_module("cross_attention", CrossAttention(config));
  }
  if (order_ != SublayerOrder::kParallelOneNorm)
    feed_forward_norm = register_module("feed_forward_norm", Norm(config));
  feed_forward = register_module("feed_forward", FeedForward(config));
  if (placement_ == NormPlacement::kSandwich) {
    attention_end_norm = register_module("attention_end_norm", Norm(config));
    feed_forward_end_norm = register_module("feed_forward_end_norm", Norm(config));
  }
}

at::Tensor BlockImpl::forward(at::Tensor x, const SelfAttentionContext& context,
                              const CrossAttentionContext& cross) {
  if (order_ != SublayerOrder::kSequential) return parallel(x, context);
  switch (placement_) {
    case NormPlacement::kPost:
      x = attention_norm(attention(x, context, /*add_to=*/x));
      if (cross_attention) x = cross_attention_norm(cross_attention(x, cross, /*add_to=*/x));
      return feed_forward_norm(feed_forward(x, /*add_to=*/x));
    case NormPlacement::kSandwich:
      x = x + attention_end_norm(attention(attention_norm(x), context));
      return x + feed_forward_end_norm(feed_forward(feed_forward_norm(x)));
    case NormPlacement::kBranchEnd:
      x = x + attention_norm(attention(x, context));
      return x + feed_forward_norm(feed_forward(x));
    default:
      return pre_norm(std::move(x), context, cross);
  }
}

at::Tensor BlockImpl::pre_norm(at::Tensor x, const SelfAttentionContext& context,
                               const CrossAttentionContext& cross) {
  if (residual_scale_ != 1.0) {
    x = x + residual_scale_ * attention(attention_norm(x), context);
    return x + residual_scale_ * feed_forward(feed_forward_norm(x));
  }
  x = attention(attention_norm ? attention_norm->branch(x) : x, context, /*add_to=*/x);
  if (cross_attention) x = cross_attention(cross_attention_norm->branch(x), cross, /*add_to=*/x);
  return feed_forward(feed_forward_norm->branch(x), /*add_to=*/x);
}

at::Tensor BlockImpl::parallel(const at::Tensor& x, const SelfAttentionContext& context) {
  const at::Tensor normed = attention_norm(x);
  const at::Tensor attended = attention(normed, context, /*add_to=*/x);
  return feed_forward(feed_forward_norm ? feed_forward_norm(x) : normed, /*add_to=*/attended);
}

}  // namespace zoo
