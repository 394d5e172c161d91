#include "models/layers/block.h"

#include <ATen/ops/dropout.h>

namespace zoo {

BlockImpl::BlockImpl(const TransformerConfig& config)
    : placement_(config.norm_placement), dropout_(config.dropout) {
  attention_norm = register_module("attention_norm", Norm(config));
  attention = register_module("attention", SelfAttention(config));
  feed_forward_norm = register_module("feed_forward_norm", Norm(config));
  feed_forward = register_module("feed_forward", FeedForward(config));
}

AttentionOutput BlockImpl::forward(const at::Tensor& input, const SelfAttentionContext& context) {
  at::Tensor x = input, weights;
  const auto attend = [&](const at::Tensor& normed) {
    AttentionOutput result = attention(normed, context);
    weights = std::move(result.weights);
    return result.output;
  };
  if (placement_ == NormPlacement::kPre) {
    x = x + drop(attend(attention_norm(x)));
    x = x + drop(feed_forward(feed_forward_norm(x)));
  } else {
    x = attention_norm(x + drop(attend(x)));
    x = feed_forward_norm(x + drop(feed_forward(x)));
  }
  return {x, weights};
}

at::Tensor BlockImpl::drop(const at::Tensor& x) const {
  return dropout_ > 0 && is_training() ? at::dropout(x, dropout_, true) : x;
}

}  // namespace zoo
