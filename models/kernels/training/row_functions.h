#pragma once

#include <ATen/core/Tensor.h>

#include "models/kernels/pointwise.h"

// Norms, gated units, rotary positions and dropout with gradients, of float32 in the memory of a CPU that has
// the kernels.
namespace zoo::kernels {

/// True if gated_unit() supports this input.
bool has_fast_gated_unit(const at::Tensor& x);

/// f(gate) * value: x [*, 2F] has gate and value side by side, the result is [*, F]. Differentiable once.
at::Tensor gated_unit(const at::Tensor& x, Pointwise f);

/// True if rotate() supports these heads [B, H, T, D], the elements of each one after another, and tables
/// [T, D] or [B, 1, T, D].
bool has_fast_rotation(const at::Tensor& x, const at::Tensor& cos);

/// Turns the pairs (x[i], x[i + D / 2]) by the angles of their tokens; both halves of the tables are equal.
/// Differentiable once.
at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

/// True if dropout() supports this: a rate in (0, 1).
bool has_fast_dropout(const at::Tensor& x, double rate);

/// A counter-based generator on all threads draws the mask, seeded by one number of LibTorch's generator.
/// Backward draws the same mask again instead of storing it.
at::Tensor dropout(const at::Tensor& x, double rate);

/// A LayerNorm or, if not centred, an RMSNorm (ops/norm.h) over the last dimension.
struct NormOptions {
  bool centred;
  double eps;
};

/// True if the functions below support this input [*, C].
bool has_fast_norm(const at::Tensor& x, const at::Tensor& weight);

/// LayerNorm or RMSNorm with gradients: weight [C], bias [C] or undefined. Differentiable once.
at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                const NormOptions& options);

struct NormedResidual {
  at::Tensor residual, normed;
};
/// Returns x and its norm. The backward pass adds both gradients of x in one pass.
NormedResidual normed_residual(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                               const NormOptions& options);

}  // namespace zoo::kernels
