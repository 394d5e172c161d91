#pragma once

#include <ATen/core/Tensor.h>

#include "models/kernels/linear.h"

namespace zoo::kernels {

/// linear() and feed_forward() with float32 tensors in mixed precision: factors are rounded to bfloat16 on
/// their way into a product, sums and results are float32. What the backward pass needs is kept in bfloat16.
at::Tensor bfloat16_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                           const at::Tensor& addend = {});
at::Tensor bfloat16_feed_forward(const at::Tensor& x, const FeedForwardWeights& weights, Pointwise f,
                                 const at::Tensor& addend = {});

}  // namespace zoo::kernels
