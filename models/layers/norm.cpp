#include "models/layers/norm.h"

#include <ATen/ops/layer_norm.h>
#include <ATen/ops/rsqrt.h>

#include "models/kernels/norm.h"
#include "models/layers/parameter.h"

namespace zoo {

NormImpl::NormImpl(NormKind kind, std::int64_t size, double eps, bool with_bias) : kind_(kind), eps_(eps) {
  const bool biased = with_bias && kind == NormKind::kLayerNorm;
  weight = register_parameter("weight", make_parameter({size}));
  bias = register_parameter("bias", biased ? make_parameter({size}) : at::Tensor(), biased);
  if (parameters_want_default()) reset();
}

NormImpl::NormImpl(const TransformerConfig& config)
    : NormImpl(config.norm, config.hidden_size, config.layer_norm_eps, config.norm_bias) {}

at::Tensor NormImpl::forward(const at::Tensor& x) const {
  if (kind_ == NormKind::kLayerNorm) return at::layer_norm(x, weight.sizes(), weight, bias, eps_);
  if (kernels::suits_norm(x, weight)) return kernels::norm(x, weight, bias, {/*centred=*/false, eps_});
  // The mean of squares needs float32: bfloat16 has 8 bits of precision.
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor scale = at::rsqrt(wide.square().mean(-1, /*keepdim=*/true) + eps_);
  return weight * (wide * scale).to(x.scalar_type());
}

NormImpl::Branches NormImpl::branch(const at::Tensor& x) const {
  if (!kernels::suits_norm(x, weight)) return {x, forward(x)};
  auto [residual, normed] = kernels::normed_residual(x, weight, bias, {kind_ == NormKind::kLayerNorm, eps_});
  return {std::move(residual), std::move(normed)};
}

void NormImpl::reset() {
  const at::NoGradGuard no_grad;
  weight.fill_(1.0);
  if (bias.defined()) bias.zero_();
}

}  // namespace zoo
