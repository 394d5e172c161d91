#pragma once

#include <ATen/core/Tensor.h>

#include "models/kernels/training/row_functions.h"

namespace zoo {

/// LayerNorm: Ba et al. (2016). RMSNorm: Zhang and Sennrich (2019). kRmsNormPlusOne: RMSNorm that multiplies
/// by 1 + weight (Gemma: Mesnard et al., 2024). kPlainRmsNorm: RMSNorm whose weights are ones, which are not
/// learned (nanochat: Karpathy, 2025).
enum class NormKind { kLayerNorm, kRmsNorm, kRmsNormPlusOne, kPlainRmsNorm };

namespace ops {

struct NormOptions {
  NormKind kind = NormKind::kLayerNorm;
  double eps = 1e-5;
};

/// Norm over the last dimension: x [*, C], weight [C], bias [C] or undefined.
at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                const NormOptions& options);

using kernels::NormedResidual;

/// Norm of an x that a residual connection reads too. The connection takes `residual`, which equals x and
/// through which the norm's backward pass adds both gradients of x in one pass.
NormedResidual normed_residual(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                               const NormOptions& options);

}  // namespace ops
}  // namespace zoo
