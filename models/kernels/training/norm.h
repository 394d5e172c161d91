#pragma once

#include <ATen/core/Tensor.h>

namespace zoo::kernels {

/// A LayerNorm or, if not centred, an RMSNorm (ops/norm.h) over the last dimension.
struct NormOptions {
  bool centred;
  double eps;
};

/// True if the functions below support this input [*, C]: float32 in memory of a CPU that has the kernels.
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
