#pragma once

#include <ATen/core/Tensor.h>

namespace zoo::kernels {

/// A LayerNorm or, not centred, an RMSNorm (layers/norm.h) over the last dimension.
struct NormOptions {
  bool centred;
  double eps;
};

/// True if the functions below take this input [*, C]: float32 in the memory of a CPU that has the kernels.
bool suits_norm(const at::Tensor& x, const at::Tensor& weight);

/// weight [C], bias [C] or undefined; with gradients. Differentiable once.
at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                const NormOptions& options);

struct NormedResidual {
  at::Tensor residual, normed;
};
/// x itself and its norm. What comes back to x on its two ways is added while the norm's gradient is
/// computed.
NormedResidual normed_residual(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                               const NormOptions& options);

}  // namespace zoo::kernels
