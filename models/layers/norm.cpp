#include "models/layers/norm.h"

#include "models/layers/parameter.h"

namespace zoo {

NormImpl::NormImpl(NormKind kind, std::int64_t size, double eps, bool with_bias) : options_{kind, eps} {
  const bool biased = with_bias && kind == NormKind::kLayerNorm;
  if (kind == NormKind::kPlainRmsNorm) {
    weight = register_buffer("weight", make_parameter({size}).detach().contiguous());
    reset();
  } else {
    weight = register_parameter("weight", make_parameter({size}));
  }
  bias = register_parameter("bias", biased ? make_parameter({size}) : at::Tensor(), biased);
  if (parameters_want_default()) reset();
}

NormImpl::NormImpl(const TransformerConfig& config)
    : NormImpl(config.norm, config.hidden_size, config.layer_norm_eps, config.norm_bias) {}

at::Tensor NormImpl::forward(const at::Tensor& x) const { return ops::norm(x, weight, bias, options_); }

ops::NormedResidual NormImpl::branch(const at::Tensor& x) const {
  return ops::normed_residual(x, weight, bias, options_);
}

void NormImpl::reset() {
  const at::NoGradGuard no_grad;
  weight.fill_(options_.kind == NormKind::kRmsNormPlusOne ? 0.0 : 1.0);
  if (bias.defined()) bias.zero_();
}

}  // namespace zoo
