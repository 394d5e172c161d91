#include "models/ops/linear.h"

#include <limits>

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>

#include "models/kernels/training/row_functions.h"

namespace zoo::ops {
namespace {

// A GPU's matrix units need rows of a multiple of 16 bytes: with GPT-2's 50257 columns, the product and its
// gradients take four times as long. Columns are added with a bias of -inf, a probability of 0.
at::Tensor padded_logits(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  constexpr std::int64_t kUnit = 64;
  const std::int64_t classes = weight.size(0), added = (kUnit - classes % kUnit) % kUnit;
  if (added == 0) return linear(x, weight, bias);
  const at::Tensor terms = bias.defined() ? bias : at::zeros({classes}, weight.options());
  return linear(x, at::constant_pad_nd(weight, {0, 0, 0, added}),
                at::constant_pad_nd(terms, {0, added}, -std::numeric_limits<double>::infinity()));
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  const Residual& residual) {
  if (!kernels::has_fast_linear(x, weight)) return residual(at::linear(x, weight, bias));
  return residual.around([&](const at::Tensor& start) { return kernels::linear(x, weight, bias, start); });
}

at::Tensor feed_forward(const at::Tensor& x, const FeedForwardWeights& weights, Activation activation,
                        double dropout, const Residual& residual) {
  const kernels::Pointwise f = pointwise(activation);
  if (dropout == 0 && f != kernels::Pointwise::kNone && kernels::has_fast_linear(x, weights.up))
    return residual.around(
        [&](const at::Tensor& start) { return kernels::feed_forward(x, weights, f, start); });
  const at::Tensor inner = activate(linear(x, weights.up, weights.up_bias), activation);
  return linear(ops::dropout(inner, dropout), weights.down, weights.down_bias, residual);
}

at::Tensor dropout(const at::Tensor& x, double rate) {
  if (rate == 0) return x;
  return kernels::has_fast_dropout(x, rate) ? kernels::dropout(x, rate) : at::dropout(x, rate, true);
}

at::Tensor vocabulary_loss(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                           const at::Tensor& targets, double smoothing) {
  if (kernels::has_fast_linear(x, weight))
    return kernels::vocabulary_loss(x, weight, bias, targets, smoothing);
  const bool pads = x.is_cuda() && smoothing == 0;
  const at::Tensor logits = pads ? padded_logits(x, weight, bias) : linear(x, weight, bias);
  return at::cross_entropy_loss(logits.to(at::kFloat), targets, {}, at::Reduction::Mean,
                                /*ignore_index=*/-100, smoothing);
}

}  // namespace zoo::ops
