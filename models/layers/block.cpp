#include "models/layers/block.h"

namespace zoo {

BlockImpl::BlockImpl(const TransformerConfig& config) : placement_(config.norm_placement) {
  attention_norm = register_module("attention_norm", Norm(config));
  attention = register_module("attention", SelfAttention(config));
  if (config.cross_attention) {
    cross_attention_norm = register_module("cross_attention_norm", Norm(config));
    cross_attention = register_module("cross_attention", CrossAttention(config));
  }
  feed_forward_norm = register_module("feed_forward_norm", Norm(config));
  feed_forward = register_module("feed_forward", FeedForward(config));
}

at::Tensor BlockImpl::forward(at::Tensor x, const SelfAttentionContext& context,
                              const CrossAttentionContext& cross) {
  if (placement_ == NormPlacement::kPre) {
    x = attention(attention_norm->branch(x), context, /*add_to=*/x);
    if (cross_attention) x = cross_attention(cross_attention_norm->branch(x), cross, /*add_to=*/x);
    return feed_forward(feed_forward_norm->branch(x), /*add_to=*/x);
  }
  x = attention_norm(attention(x, context, /*add_to=*/x));
  if (cross_attention) x = cross_attention_norm(cross_attention(x, cross, /*add_to=*/x));
  return feed_forward_norm(feed_forward(x, /*add_to=*/x));
}

}  // namespace zoo
