#include "models/ops/linear.h"

#include <ATen/ops/linear.h>

namespace zoo::ops {

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  const Residual& residual) {
  if (!kernels::has_fast_linear(x, weight)) return residual(at::linear(x, weight, bias));
  return residual.around([&](const at::Tensor& start) { return kernels::linear(x, weight, bias, start); });
}

at::Tensor feed_forward(const at::Tensor& x, const FeedForwardWeights& weights, Activation activation,
                        double dropout, const Residual& residual) {
  const kernels::Pointwise f = pointwise(activation);
  if (dropout == 0 && f != kernels::Pointwise::kNone && kernels::has_fast_linear(x, weights.up)) {
    return residual.around(
        [&](const at::Tensor& start) { return kernels::feed_forward(x, weights, f, start); });
  }
  const at::Tensor inner = activate(linear(x, weights.up, weights.up_bias), activation);
  return linear(ops::dropout(inner, dropout), weights.down, weights.down_bias, residual);
}

}  // namespace zoo::ops
