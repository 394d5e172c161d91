#include "apps/training/optimizers/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "apps/training/optimizers/adafactor.h"
#include "apps/training/optimizers/adamw.h"
#include "apps/training/optimizers/lion.h"
#include "apps/training/optimizers/sgd.h"
#include "apps/training/parallel/tensor_parts.h"
#include "data/base/error.h"
#include "models/kernels/adamw.h"

namespace zoo {
namespace {

at::Tensor norm_of(const std::vector<at::Tensor>& gradients) {
  if (!suit_kernels(gradients)) return at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients)));
  const std::vector<TensorPart> parts = parts_of(gradients);
  std::vector<double> squares(parts.size());
  for_each_part(parts, [&](std::size_t i) {
    const TensorPart& part = parts[i];
    squares[i] =
        kernels::sum_of_squares(gradients[part.tensor].const_data_ptr<float>() + part.first, part.size);
  });
  return at::scalar_tensor(std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0)), at::kFloat);
}

}  // namespace

Optimizer::Optimizer(const torch::nn::Module& module, double grad_clip) : grad_clip_(grad_clip) {
  for (const auto& entry : module.named_parameters()) {
    if (entry.value().requires_grad()) parameters_.emplace_back(entry.key(), entry.value());
  }
  TORCH_CHECK(!parameters_.empty(), "the model has nothing to train");
  step_ = at::zeros({}, parameters_[0].second.options().dtype(at::kFloat).requires_grad(false));
}

Optimizer::State& Optimizer::add_state(const std::string& name) {
  states_.push_back(std::make_unique<State>(State{name, {}}));
  for (const auto& entry : parameters_)
    states_.back()->tensors.push_back(at::zeros_like(entry.second.detach()));
  return *states_.back();
}

std::vector<at::Tensor> Optimizer::gradients() const {
  std::vector<at::Tensor> gradients;
  for (const auto& [name, parameter] : parameters_) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  return gradients;
}

void Optimizer::step(double learning_rate) {
  const at::NoGradGuard no_grad;
  Update now{.learning_rate = learning_rate};
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameter(i).grad().defined()) now.active.push_back(i);
  }
  if (now.active.empty()) return;
  norm_ = norm_of(gradients());
  // 1e-6 as in torch.nn.utils.clip_grad_norm_.
  if (grad_clip_ > 0) now.divisor = ((norm_ + 1e-6) / grad_clip_).clamp_min_(1.0);
  now.found_inf = norm_.isfinite().logical_not().to(at::kFloat);
  step_.add_(1 - now.found_inf);
  update(now);
}

at::Tensor Optimizer::gradient(std::size_t i, const Update& update) const {
  return update.divisor.defined() ? parameter(i).grad() / update.divisor : parameter(i).grad();
}

void Optimizer::zero_grad() {
  for (auto& [name, parameter] : parameters_) parameter.mutable_grad().reset();
}

NamedTensors Optimizer::state() const {
  NamedTensors tensors;
  for (const auto& state : states_) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (state->tensors[i].defined())
        tensors.emplace_back(state->name + "." + parameters_[i].first, state->tensors[i]);
    }
  }
  tensors.emplace_back("step", step_);
  return tensors;
}

void Optimizer::load_state(const SafetensorsFile& file) {
  const at::NoGradGuard no_grad;
  for (auto& [name, tensor] : state()) {
    const auto& entry = file.entry(name);
    if (tensor.sizes() != at::IntArrayRef(entry.shape) || tensor.scalar_type() != entry.dtype) {
      throw Error(file.path(), ": tensor '", name, "' has another shape or type than the model's parameter");
    }
    tensor.copy_(file.tensor(name));
  }
}

const std::vector<std::string>& optimizer_names() {
  static const std::vector<std::string> names{"adamw", "adafactor", "sgd", "lion"};
  return names;
}

std::unique_ptr<Optimizer> make_optimizer(const torch::nn::Module& module, const OptimizerOptions& o) {
  switch (o.kind) {
    case OptimizerKind::kAdafactor:
      return std::make_unique<Adafactor>(
          module, Adafactor::Options{.weight_decay = o.weight_decay, .grad_clip = o.grad_clip});
    case OptimizerKind::kSgd:
      return std::make_unique<Sgd>(
          module,
          Sgd::Options{.momentum = o.momentum, .weight_decay = o.weight_decay, .grad_clip = o.grad_clip});
    case OptimizerKind::kLion:
      return std::make_unique<Lion>(
          module,
          Lion::Options{
              .beta1 = o.beta1, .beta2 = o.beta2, .weight_decay = o.weight_decay, .grad_clip = o.grad_clip});
    default:
      return std::make_unique<AdamW>(module, AdamW::Options{.beta1 = o.beta1,
                                                            .beta2 = o.beta2,
                                                            .eps = o.eps,
                                                            .weight_decay = o.weight_decay,
                                                            .grad_clip = o.grad_clip});
  }
}

}  // namespace zoo
