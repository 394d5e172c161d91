#pragma once

#include <ATen/core/Tensor.h>

#include "models/kernels/linear.h"

namespace zoo::kernels {

/// linear() and feed_forward() of float32 tensors in mixed precision: products round their factors to
/// bfloat16; sums and results are float32. Tensors for the backward pass are kept in bfloat16.
at::Tensor bfloat16_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                           const at::Tensor& addend = {});
at::Tensor bfloat16_feed_forward(const at::Tensor& x, const FeedForwardWeights& weights, Pointwise f,
                                 const at::Tensor& addend = {});

}  // namespace zoo::kernels
