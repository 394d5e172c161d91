#pragma once

#include <ATen/core/Tensor.h>

namespace zoo::kernels {

/// True if rotate() supports these heads [B, H, T, D] and tables [T, D] or [B, 1, T, D]: float32 in the
/// memory of a CPU that has the kernels, the elements of a head one after another.
bool has_fast_rotation(const at::Tensor& x, const at::Tensor& cos);

/// Turns the pairs (x[i], x[i + D / 2]) by the angles of their tokens, with gradients; both halves of the
/// tables are equal. Differentiable once.
at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

}  // namespace zoo::kernels
