#pragma once

#include <ATen/core/Tensor.h>

#include "models/kernels/pointwise.h"

namespace zoo::kernels {

/// True if the functions below take this input, [*, in]: float32 in the memory of a CPU that has the kernels,
/// without autocast or with autocast to bfloat16, and enough rows for a matrix product (a few rows are read
/// from memory, not computed).
bool suits(const at::Tensor& x, const at::Tensor& weight);

/// Whether their products are taken in bfloat16: whether autocast says so.
bool is_mixed();

/// x W^T + b + addend with gradients: weight [out, in], bias [out] or undefined, addend [*, out] or
/// undefined. Differentiable once.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  const at::Tensor& addend = {});

/// The weights of a position-wise feed-forward network, Linear's.
struct FeedForwardWeights {
  at::Tensor up, up_bias;      // [F, C], [F] or undefined
  at::Tensor down, down_bias;  // [C, F], [C] or undefined
};

/// down(f(up(x))) + addend with gradients: f and its slope are computed while a part of the product is still
/// in the cache. addend [*, C] or undefined. Differentiable once.
at::Tensor feed_forward(const at::Tensor& x, const FeedForwardWeights& weights, Pointwise f,
                        const at::Tensor& addend = {});

}  // namespace zoo::kernels
