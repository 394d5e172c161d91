#include "models/layers/block.h"

#include "models/layers/interventions.h"

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
  if (config.has_experts(layer)) {
    experts = register_module("experts", Experts(config));
  } else {
    feed_forward = register_module("feed_forward", FeedForward(config));
  }
  if (placement_ == NormPlacement::kSandwich) {
    attention_end_norm = register_module("attention_end_norm", Norm(config));
    feed_forward_end_norm = register_module("feed_forward_end_norm", Norm(config));
  }
}

at::Tensor BlockImpl::feed(const at::Tensor& x, const SelfAttentionContext& context,
                           const at::Tensor& add_to) {
  return experts ? experts(x, add_to, context.router_logits) : feed_forward(x, add_to);
}

at::Tensor BlockImpl::forward(at::Tensor x, const SelfAttentionContext& context,
                              const CrossAttentionContext& cross) {
  if (context.hook != nullptr) return hooked(x, context, cross);
  if (order_ != SublayerOrder::kSequential) return parallel(x, context);
  switch (placement_) {
    case NormPlacement::kPost:
      x = attention_norm(attention(x, context, /*add_to=*/x));
      if (cross_attention) x = cross_attention_norm(cross_attention(x, cross, /*add_to=*/x));
      return feed_forward_norm(feed(x, context, /*add_to=*/x));
    case NormPlacement::kSandwich:
      x = x + attention_end_norm(attention(attention_norm(x), context));
      return x + feed_forward_end_norm(feed(feed_forward_norm(x), context));
    case NormPlacement::kBranchEnd:
      x = x + attention_norm(attention(x, context));
      return x + feed_forward_norm(feed(x, context));
    default:
      return pre_norm(std::move(x), context, cross);
  }
}

at::Tensor BlockImpl::pre_norm(at::Tensor x, const SelfAttentionContext& context,
                               const CrossAttentionContext& cross) {
  if (residual_scale_ != 1.0) {
    x = x + residual_scale_ * attention(attention_norm(x), context);
    return x + residual_scale_ * feed(feed_forward_norm(x), context);
  }
  x = attention(attention_norm ? attention_norm->branch(x) : x, context, /*add_to=*/x);
  if (cross_attention) x = cross_attention(cross_attention_norm->branch(x), cross, /*add_to=*/x);
  return feed(feed_forward_norm->branch(x), context, /*add_to=*/x);
}

at::Tensor BlockImpl::parallel(const at::Tensor& x, const SelfAttentionContext& context) {
  const at::Tensor normed = attention_norm(x);
  const at::Tensor attended = attention(normed, context, /*add_to=*/x);
  return feed(feed_forward_norm ? feed_forward_norm(x) : normed, context, /*add_to=*/attended);
}

// The same block with each sublayer's output by itself, which the hook records and replaces.
at::Tensor BlockImpl::hooked(const at::Tensor& input, const SelfAttentionContext& context,
                             const CrossAttentionContext& cross) {
  const bool post = placement_ == NormPlacement::kPost, end = placement_ == NormPlacement::kBranchEnd;
  const auto normed = [](const Norm& norm, const at::Tensor& x) { return norm ? norm->forward(x) : x; };
  const auto branch_input = [&](const Norm& norm, const at::Tensor& x) {
    return post || end ? x : normed(norm, x);
  };
  const auto branch_output = [&](LayerPart part, const Norm& norm, const at::Tensor& y) {
    const at::Tensor output = normed(norm, y);
    return context.hook->sublayer(part, residual_scale_ == 1.0 ? output : residual_scale_ * output);
  };
  const auto sum = [&](const Norm& norm, const at::Tensor& x, const at::Tensor& output) {
    return post ? norm->forward(x + output) : x + output;
  };
  const at::Tensor read = branch_input(attention_norm, input);
  const at::Tensor attended = branch_output(LayerPart::kAttention, end ? attention_norm : attention_end_norm,
                                            attention(read, context));
  at::Tensor x = sum(attention_norm, input, attended);
  if (cross_attention) {
    const at::Tensor seen = cross_attention(branch_input(cross_attention_norm, x), cross);
    x = sum(cross_attention_norm, x, branch_output(LayerPart::kCrossAttention, Norm(nullptr), seen));
  }
  const at::Tensor& source = order_ == SublayerOrder::kSequential ? x : input;
  const bool one_norm = order_ == SublayerOrder::kParallelOneNorm;
  const at::Tensor computed = feed(one_norm ? read : branch_input(feed_forward_norm, source), context);
  x = sum(feed_forward_norm, x,
          branch_output(LayerPart::kFeedForward, end ? feed_forward_norm : feed_forward_end_norm, computed));
  return context.hook->residual(input, x);
}

}  // namespace zoo
