#include "models/ops/norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/rsqrt.h>

namespace zoo::ops {
namespace {

// Options of a plain RMSNorm, to which the caller passes 1 + weight.
NormOptions plain(const NormOptions& options) { return {.kind = NormKind::kRmsNorm, .eps = options.eps}; }

}  // namespace

at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                const NormOptions& options) {
  const bool plus_one = options.kind == NormKind::kRmsNormPlusOne,
             centred = options.kind == NormKind::kLayerNorm;
  if (plus_one && x.scalar_type() == at::kFloat) return norm(x, weight + 1, bias, plain(options));
  if (kernels::has_fast_norm(x, weight)) return kernels::norm(x, weight, bias, {centred, options.eps});
  if (centred) return at::layer_norm(x, weight.sizes(), weight, bias, options.eps);
  // The mean of squares needs float32: bfloat16 has 8 bits of precision.
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor scale = at::rsqrt(wide.square().mean(-1, /*keepdim=*/true) + options.eps);
  // Gemma multiplies before it rounds, Llama after.
  if (plus_one) return (wide * scale * (weight.to(at::kFloat) + 1)).to(x.scalar_type());
  return weight * (wide * scale).to(x.scalar_type());
}

NormedResidual normed_residual(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                               const NormOptions& options) {
  if (options.kind == NormKind::kRmsNormPlusOne && x.scalar_type() == at::kFloat)
    return normed_residual(x, weight + 1, bias, plain(options));
  if (options.kind == NormKind::kRmsNormPlusOne || !kernels::has_fast_norm(x, weight))
    return {x, norm(x, weight, bias, options)};
  return kernels::normed_residual(x, weight, bias, {options.kind == NormKind::kLayerNorm, options.eps});
}

}  // namespace zoo::ops
