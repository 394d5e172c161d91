#include "models/layers/block.h"

#include "models/layers/dropout.h"

namespace zoo {

BlockImpl::BlockImpl(const TransformerConfig& config)
    : placement_(config.norm_placement), dropout_(config.dropout) {
  attention_norm = register_module("attention_norm", Norm(config));
  attention = register_module("attention", SelfAttention(config));
  if (config.cross_attention) {
    cross_attention_norm = register_module("cross_attention_norm", Norm(config));
    cross_attention = register_module("cross_attention", CrossAttention(config));
  }
  feed_forward_norm = register_module("feed_forward_norm", Norm(config));
  feed_forward = register_module("feed_forward", FeedForward(config));
}

BlockOutput BlockImpl::forward(const at::Tensor& input, const SelfAttentionContext& context,
                               const CrossAttentionContext& cross) {
  BlockOutput result;
  at::Tensor x = input;
  const auto attend = [&](const at::Tensor& y) {
    AttentionOutput attended = attention(y, context);
    result.weights = std::move(attended.weights);
    return attended.output;
  };
  const auto attend_to_memory = [&](const at::Tensor& y) {
    AttentionOutput attended = cross_attention(y, cross);
    result.cross_weights = std::move(attended.weights);
    return attended.output;
  };
  if (placement_ == NormPlacement::kPre) {
    x = x + drop(attend(attention_norm(x)));
    if (cross_attention) x = x + drop(attend_to_memory(cross_attention_norm(x)));
    x = x + drop(feed_forward(feed_forward_norm(x)));
  } else {
    x = attention_norm(x + drop(attend(x)));
    if (cross_attention) x = cross_attention_norm(x + drop(attend_to_memory(x)));
    x = feed_forward_norm(x + drop(feed_forward(x)));
  }
  result.output = std::move(x);
  return result;
}

at::Tensor BlockImpl::drop(const at::Tensor& x) const {
  return dropout_ > 0 && is_training() ? zoo::dropout(x, dropout_) : x;
}

}  // namespace zoo
