#include "models/layers/block.h"

#include "models/ops/dropout.h"

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
  connect(x, *attention_norm, [&](const at::Tensor& y, const at::Tensor& residual) {
    AttentionOutput attended = attention(y, context, residual);
    result.weights = std::move(attended.weights);
    return std::move(attended.output);
  });
  if (cross_attention) {
    connect(x, *cross_attention_norm, [&](const at::Tensor& y, const at::Tensor& residual) {
      AttentionOutput attended = cross_attention(y, cross, residual);
      result.cross_weights = std::move(attended.weights);
      return std::move(attended.output);
    });
  }
  connect(x, *feed_forward_norm,
          [&](const at::Tensor& y, const at::Tensor& residual) { return feed_forward(y, residual); });
  result.output = std::move(x);
  return result;
}

template <class Sublayer>
void BlockImpl::connect(at::Tensor& x, const NormImpl& norm, const Sublayer& sublayer) const {
  // Without dropout the sublayer's last product starts from the residual, which saves a pass.
  const bool drops = dropout_ > 0 && is_training();
  const auto around = [&](const at::Tensor& residual, const at::Tensor& y) {
    return drops ? residual + zoo::dropout(sublayer(y, at::Tensor()), dropout_, /*training=*/true)
                 : sublayer(y, residual);
  };
  if (placement_ == NormPlacement::kPre) {
    const auto [residual, normed] = norm.branch(x);
    x = around(residual, normed);
  } else {
    x = norm.forward(around(x, x));
  }
}

}  // namespace zoo
