#pragma once

#include <ATen/core/Tensor.h>

#include "models/kernels/pointwise.h"

namespace zoo::kernels {

/// True if the functions below support this input [*, in]: float32 in the memory of a CPU that has the
/// kernels, without autocast or with autocast to bfloat16, and enough rows for a matrix product (with few
/// rows, loading the weights dominates).
bool has_fast_linear(const at::Tensor& x, const at::Tensor& weight);

/// True if they multiply in bfloat16 because of autocast: products round their factors to bfloat16; sums and
/// results are float32. Tensors for the backward pass are saved in bfloat16. On a CPU without bfloat16
/// products everything is float32 under autocast, too: it is faster there, and more exact.
bool is_mixed();

/// x W^T + b + addend with gradients: weight [out, in], bias [out] or undefined, addend [*, out] or
/// undefined. Differentiable once.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  const at::Tensor& addend = {});

/// Weights of a position-wise feed-forward network, in Linear's layout.
struct FeedForwardWeights {
  at::Tensor up, up_bias;      // [F, C], [F] or undefined
  at::Tensor down, down_bias;  // [C, F], [C] or undefined
};

/// down(f(up(x))) + addend with gradients: computes f and its slope while part of the product is still in the
/// cache. addend [*, C] or undefined. Differentiable once.
at::Tensor feed_forward(const at::Tensor& x, const FeedForwardWeights& weights, Pointwise f,
                        const at::Tensor& addend = {});

/// ops::vocabulary_loss (ops/linear.h), float32, for inputs that linear() supports, with gradients. Idea:
/// forward already computes them, chunk by chunk of rows, so that the logits [N, V] never exist at once.
/// Differentiable once.
at::Tensor vocabulary_loss(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                           const at::Tensor& targets, double smoothing);

}  // namespace zoo::kernels
