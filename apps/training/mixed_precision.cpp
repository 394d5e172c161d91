#include "apps/training/mixed_precision.h"

#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

namespace zoo {

GradScaler::GradScaler(const Options& options, c10::Device device) : options_(options) {
  const auto floats = at::TensorOptions().dtype(at::kFloat).device(device);
  scale_ = at::full({}, options.initial_scale, floats);
  growth_tracker_ = at::zeros({}, floats.dtype(at::kInt));
  found_inf_ = at::zeros({}, floats);
}

bool GradScaler::unscale(const std::vector<at::Tensor>& gradients) {
  const at::NoGradGuard no_grad;
  found_inf_.zero_();
  if (!gradients.empty())
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, found_inf_,
                                                   scale_.to(at::kDouble).reciprocal().to(at::kFloat));
  return found_inf_.item<float>() == 0;
}

void GradScaler::adjust() {
  at::_amp_update_scale_(scale_, growth_tracker_, found_inf_, options_.growth, options_.backoff,
                         options_.growth_interval);
}

}  // namespace zoo
