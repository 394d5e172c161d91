#pragma once

#include <ATen/core/Tensor.h>

namespace zoo {

/// LayerNorm: Ba et al. (2016). RMSNorm: Zhang and Sennrich (2019). kRmsNormPlusOne: RMSNorm that multiplies
/// by 1 + weight (Gemma: Mesnard et al., 2024).
enum class NormKind { kLayerNorm, kRmsNorm, kRmsNormPlusOne };

namespace ops {

struct NormOptions {
  NormKind kind = NormKind::kLayerNorm;
  double eps = 1e-5;
};

/// Norm over the last dimension: x [*, C], weight [C], bias [C] or undefined.
at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                const NormOptions& options);

/// The same for an x that a residual connection also uses. Replaces `x` by an equal tensor, so that the
/// norm's backward pass adds both gradients of x in one pass.
at::Tensor norm_beside_residual(at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                const NormOptions& options);

}  // namespace ops
}  // namespace zoo
