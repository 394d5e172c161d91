#include "apps/training/optimizers/weight_average.h"

#include <ATen/ops/_foreach_lerp.h>

#include "data/base/error.h"

namespace zoo {

WeightAverage::WeightAverage(const torch::nn::Module& module, double decay) : decay_(decay) {
  for (const auto& entry : module.named_parameters()) {
    if (!entry.value().requires_grad()) continue;  // a frozen parameter never changes
    weights_.push_back(entry.value());
    averages_.emplace_back(entry.key(), entry.value().detach().clone());
    average_tensors_.push_back(averages_.back().second);
  }
}

void WeightAverage::update() {
  const at::NoGradGuard no_grad;
  at::_foreach_lerp_(average_tensors_, weights_, 1 - decay_);
}

void WeightAverage::swap() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const at::Tensor weight = weights_[i].detach().clone();
    weights_[i].copy_(average_tensors_[i]);
    average_tensors_[i].copy_(weight);
  }
}

void load_tensors(const SafetensorsFile& file, const NamedTensors& tensors) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.sizes() != at::IntArrayRef(file.entry(name).shape))
      throw Error(file.path(), ": tensor '", name, "' has another shape than the model's parameter");
    tensor.copy_(file.tensor(name));
  }
}

}  // namespace zoo
