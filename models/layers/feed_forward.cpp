#include "models/layers/feed_forward.h"

#include <ATen/ops/gelu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tanh.h>

#include "models/kernels/linear.h"
#include "models/ops/dropout.h"

namespace zoo {
namespace {

// The activation in the kernels' enum; kNone if they lack it.
kernels::Pointwise pointwise(Activation activation) {
  switch (activation) {
    case Activation::kRelu:
      return kernels::Pointwise::kRelu;
    case Activation::kGelu:
      return kernels::Pointwise::kGelu;
    case Activation::kGeluTanh:
      return kernels::Pointwise::kGeluTanh;
    case Activation::kSilu:
      return kernels::Pointwise::kSilu;
    default:
      return kernels::Pointwise::kNone;
  }
}

}  // namespace

at::Tensor activate(const at::Tensor& x, Activation activation) {
  const auto gated = [&](Activation gate) {
    const auto halves = x.chunk(2, -1);
    return activate(halves[0], gate) * halves[1];
  };
  switch (activation) {
    case Activation::kRelu:
      return at::relu(x);
    case Activation::kGelu:
      return at::gelu(x, "none");
    case Activation::kGeluTanh:
      return at::gelu(x, "tanh");
    case Activation::kSilu:
      return at::silu(x);
    case Activation::kSwiGlu:
      return gated(Activation::kSilu);
    case Activation::kGeGlu:
      return gated(Activation::kGelu);
    case Activation::kReGlu:
      return gated(Activation::kRelu);
    case Activation::kGeGluTanh:
      return gated(Activation::kGeluTanh);
    case Activation::kTanh:
      return at::tanh(x);
  }
  TORCH_CHECK(false, "unknown activation ", static_cast<int>(activation));
}

FeedForwardImpl::FeedForwardImpl(const TransformerConfig& config)
    : activation_(config.activation), dropout_(config.activation_dropout) {
  const std::int64_t width = config.feed_forward_size();
  const std::int64_t up_width = is_gated(activation_) ? 2 * width : width;
  up = register_module("up", Linear(config.hidden_size, up_width, config.feed_forward_bias));
  down = register_module("down", Linear(width, config.hidden_size, config.feed_forward_bias));
}

at::Tensor FeedForwardImpl::forward(const at::Tensor& x, const at::Tensor& residual) {
  const bool drops = dropout_ > 0 && is_training();
  const kernels::Pointwise f = pointwise(activation_);
  if (!drops && f != kernels::Pointwise::kNone && kernels::suits(x, up->weight) &&
      (!residual.defined() || residual.scalar_type() == at::kFloat)) {
    return kernels::feed_forward(x, {up->weight, up->bias, down->weight, down->bias}, f, residual);
  }
  const at::Tensor inner = activate(up(x), activation_);
  return down(zoo::dropout(inner, dropout_, is_training()), residual);
}

}  // namespace zoo
