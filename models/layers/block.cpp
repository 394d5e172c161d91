#include "models/layers/block.h"

#include <utility>

namespace zoo {
namespace {

const Norm kNoNorm{nullptr};

}  // namespace

BlockImpl::BlockImpl(const TransformerConfig& config, std::int64_t layer) : config_(config) {
  if (layer > 0 || config.first_attention_norm)
    attention_norm = register_module("attention_norm", Norm(config));
  attention = register_module("attention", SelfAttention(config));
  if (config.cross_attention) {
    cross_attention_norm = register_module("cross_attention_norm", Norm(config));
    cross_attention = register_module("cross_attention", CrossAttention(config));
  }
  if (config.sublayer_order != SublayerOrder::kParallelOneNorm)
    feed_forward_norm = register_module("feed_forward_norm", Norm(config));
  if (config.has_experts(layer)) {
    experts = register_module("experts", Experts(config));
  } else {
    feed_forward = register_module("feed_forward", FeedForward(config));
  }
  if (config.norm_placement == NormPlacement::kSandwich) {
    attention_end_norm = register_module("attention_end_norm", Norm(config));
    feed_forward_end_norm = register_module("feed_forward_end_norm", Norm(config));
  }
}

// A sublayer's norms, and who watches its output.
struct BlockImpl::Branch {
  LayerPart part;
  const Norm& norm;      // before the sublayer; in post-LN after the residual sum. May be empty
  const Norm& end_norm;  // of the sublayer's output; may be empty
  bool post_norm;
  double scale;           // of the sublayer's output
  const LayerHook* hook;  // or null

  // True if the sublayer's last product may add the residual itself, which saves a pass.
  bool is_fused() const { return hook == nullptr && !end_norm && scale == 1.0; }

  // residual + sublayer(input, none), where sublayer(x, y) adds its result to y.
  template <class Sublayer>
  at::Tensor add(const at::Tensor& residual, const at::Tensor& input, const Sublayer& sublayer) const {
    if (is_fused()) return sublayer(input, residual);
    at::Tensor output = sublayer(input, at::Tensor());
    if (end_norm) output = end_norm->forward(output);
    if (scale != 1.0) output = scale * output;
    if (hook != nullptr) output = hook->sublayer(part, std::move(output));
    return residual + output;
  }

  // x + sublayer(norm(x)), or norm(x + sublayer(x)).
  template <class Sublayer> at::Tensor operator()(const at::Tensor& x, const Sublayer& sublayer) const {
    if (post_norm) return norm->forward(add(x, x, sublayer));
    if (!norm) return add(x, x, sublayer);
    if (!is_fused()) return add(x, norm->forward(x), sublayer);
    const auto [residual, normed] = norm->branch(x);
    return add(residual, normed, sublayer);
  }
};

BlockImpl::Branch BlockImpl::branch(LayerPart part, const Norm& norm, const Norm& end_norm,
                                    const LayerHook* hook) const {
  const bool at_end = config_.norm_placement == NormPlacement::kBranchEnd;
  return {.part = part,
          .norm = at_end ? kNoNorm : norm,
          .end_norm = at_end ? norm : end_norm,
          .post_norm = config_.norm_placement == NormPlacement::kPost,
          .scale = config_.residual_scale,
          .hook = hook};
}

at::Tensor BlockImpl::forward(at::Tensor x, const SelfAttentionContext& context,
                              const CrossAttentionContext& cross) {
  const auto attend = [&](const at::Tensor& y, const at::Tensor& add_to) {
    return attention(y, context, add_to);
  };
  const auto attend_memory = [&](const at::Tensor& y, const at::Tensor& add_to) {
    return cross_attention(y, cross, add_to);
  };
  const auto feed = [&](const at::Tensor& y, const at::Tensor& add_to) {
    return experts ? experts(y, add_to, context.router_logits) : feed_forward(y, add_to);
  };
  const LayerHook* hook = context.hook;
  const Branch attending = branch(LayerPart::kAttention, attention_norm, attention_end_norm, hook);
  const Branch reading = branch(LayerPart::kCrossAttention, cross_attention_norm, kNoNorm, hook);
  const Branch feeding = branch(LayerPart::kFeedForward, feed_forward_norm, feed_forward_end_norm, hook);
  const at::Tensor input = hook != nullptr ? x : at::Tensor();
  if (config_.sublayer_order == SublayerOrder::kSequential) {
    x = attending(x, attend);
    if (cross_attention) x = reading(x, attend_memory);
    x = feeding(x, feed);
  } else {  // both sublayers read the block's input
    const at::Tensor normed = attention_norm(x);
    const at::Tensor attended = attending.add(x, normed, attend);
    x = feeding.add(attended, feed_forward_norm ? feed_forward_norm(x) : normed, feed);
  }
  return hook != nullptr ? hook->residual(input, x) : x;
}

}  // namespace zoo
