#include "apps/training/optimizers/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "apps/training/parallel/tensor_parts.h"
#include "data/base/error.h"
#include "data/base/sizes.h"
#include "models/kernels/training/adamw.h"

namespace zoo {
namespace {

// The sum of squares, of tensors that suit kernels.
double squares_of(const std::vector<at::Tensor>& gradients) {
  const std::vector<TensorPart> parts = parts_of(gradients);
  std::vector<double> squares(parts.size());
  for_each_part(parts, [&](std::size_t i) {
    const TensorPart& part = parts[i];
    squares[i] =
        kernels::sum_of_squares(gradients[part.tensor].const_data_ptr<float>() + part.first, part.size);
  });
  return std::accumulate(squares.begin(), squares.end(), 0.0);
}

at::Tensor norm_of(const std::vector<at::Tensor>& gradients) {
  if (!suit_kernels(gradients)) return at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients)));
  return at::scalar_tensor(std::sqrt(squares_of(gradients)), at::kFloat);
}

// Of gradients of which each rank has some, in the CPU's memory.
at::Tensor norm_over(const std::vector<at::Tensor>& gradients, Ranks& ranks) {
  double own = 0;
  if (suit_kernels(gradients)) own = squares_of(gradients);
  else if (!gradients.empty()) own = std::pow(norm_of(gradients).item<double>(), 2);
  return at::scalar_tensor(std::sqrt(ranks.sum(own)), at::kFloat);
}

}  // namespace

Optimizer::Optimizer(const torch::nn::Module& module, const OptimizerOptions& options, Ranks* ranks)
    : options_(options), ranks_(ranks) {
  for (const auto& entry : module.named_parameters())
    if (entry.value().requires_grad()) parameters_.emplace_back(entry.key(), entry.value());
  TORCH_CHECK(!parameters_.empty(), "the model has nothing to train");
  if (ranks_ != nullptr) divide_parameters();
  step_ = at::zeros({}, parameters_[0].second.options().dtype(at::kFloat).requires_grad(false));
  if (!options_.skip_spikes) return;
  for (at::Tensor* number : {&usual_norm_, &norms_, &skipped_}) *number = at::zeros_like(step_);
}

Optimizer::State& Optimizer::add_state(const std::string& name,
                                       const std::function<bool(std::size_t)>& holds) {
  states_.push_back(std::make_unique<State>(State{name, std::vector<at::Tensor>(parameters_.size())}));
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (holds && !holds(i)) continue;
    const at::Tensor like = parameter(i).detach();
    states_.back()->tensors[i] =
        at::zeros_like(like, like.options().device(owns(i) ? like.device() : c10::Device(at::kMeta)));
  }
  return *states_.back();
}

// The largest first, each to the rank with the least state.
void Optimizer::divide_parameters() {
  owners_.resize(parameters_.size());
  std::vector<std::size_t> by_size = indices_below(parameters_.size());
  std::ranges::stable_sort(by_size, std::greater<>(), [&](std::size_t i) { return parameter(i).numel(); });
  std::vector<std::int64_t> shares(static_cast<std::size_t>(ranks_->size()));
  for (const std::size_t i : by_size) {
    const auto least = std::min_element(shares.begin(), shares.end());
    *least += parameter(i).numel();
    owners_[i] = least - shares.begin();
  }
}

std::vector<at::Tensor> Optimizer::gradients() const {
  std::vector<at::Tensor> gradients;
  for (const auto& [name, parameter] : parameters_)
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  return gradients;
}

void Optimizer::step(double learning_rate, double decay_share) {
  const at::NoGradGuard no_grad;
  Update now{.learning_rate = learning_rate, .decay_share = decay_share};
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (parameter(i).grad().defined()) now.active.push_back(i);
  const bool divided = !apart_.empty();
  if (now.active.empty() && !divided) return;
  norm_ = divided ? norm_over(gradients(), *ranks_) : norm_of(gradients());
  // 1e-6 as in torch.nn.utils.clip_grad_norm_.
  if (options_.grad_clip > 0) now.divisor = ((norm_ + 1e-6) / options_.grad_clip).clamp_min_(1.0);
  now.found_inf = norm_.isfinite().logical_not().to(at::kFloat);
  if (options_.skip_spikes) now.found_inf = at::maximum(now.found_inf, spikes());
  step_.add_(1 - now.found_inf);
  std::vector<std::size_t> sent = now.active;
  if (divided) {  // no rank knows all gradients
    sent.clear();
    for (std::size_t i = 0; i < apart_.size(); ++i)
      if (!apart_[i]) sent.push_back(i);
  }
  std::erase_if(now.active, [&](std::size_t i) { return !owns(i); });
  if (!now.active.empty()) update(now);
  if (ranks_ == nullptr) return;
  for (const std::size_t i : sent) ranks_->broadcast(parameter(i), owners_[i]);
}

// 1 if the norm is a spike, else 0.
at::Tensor Optimizer::spikes() {
  constexpr double kFirst = 50, kShare = 0.01;
  const at::Tensor bound = at::where(norms_ < kFirst, norm_, usual_norm_ * *options_.skip_spikes);
  const at::Tensor is_spike = (norm_ > bound).to(at::kFloat);
  // While there are few, the mean of all.
  const at::Tensor share = (norms_ + 1).reciprocal().clamp_min_(kShare);
  const at::Tensor moved = usual_norm_ + share * (at::minimum(norm_, bound) - usual_norm_);
  const at::Tensor is_finite = norm_.isfinite();
  usual_norm_.copy_(at::where(is_finite, moved, usual_norm_));
  norms_.add_(is_finite);
  skipped_.add_(is_spike);
  return is_spike;
}

at::Tensor Optimizer::gradient(std::size_t i, const Update& update) const {
  return update.divisor.defined() ? parameter(i).grad() / update.divisor : parameter(i).grad();
}

NamedTensors Optimizer::spike_state() const {
  if (!options_.skip_spikes) return {};
  return {{"usual_norm", usual_norm_}, {"norms", norms_}, {"skipped", skipped_}};
}

NamedTensors Optimizer::state() const {
  NamedTensors tensors;
  for (const auto& state : states_) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      at::Tensor tensor = state->tensors[i];
      if (!tensor.defined()) continue;
      if (ranks_ != nullptr) {
        tensor = owns(i) ? tensor.cpu() : at::empty_like(tensor, tensor.options().device(at::kCPU));
        ranks_->broadcast(tensor, owners_[i]);
        if (ranks_->rank() != 0) continue;
      }
      tensors.emplace_back(state->name + "." + parameters_[i].first, tensor);
    }
  }
  tensors.emplace_back("step", step_);
  for (const auto& each : spike_state()) tensors.push_back(each);
  return tensors;
}

void Optimizer::load_state(const SafetensorsFile& file) {
  const at::NoGradGuard no_grad;
  const auto load = [&](const std::string& name, const at::Tensor& tensor) {
    const auto& entry = file.entry(name);
    if (tensor.sizes() != at::IntArrayRef(entry.shape) || tensor.scalar_type() != entry.dtype)
      throw Error(file.path(), ": tensor '", name, "' has another shape or type than the model's parameter");
    if (!tensor.is_meta()) tensor.copy_(file.tensor(name));
  };
  for (const auto& state : states_) {
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      if (state->tensors[i].defined()) load(state->name + "." + parameters_[i].first, state->tensors[i]);
  }
  load("step", step_);
  for (const auto& [name, tensor] : spike_state())
    if (file.contains("usual_norm")) load(name, tensor);
}

}  // namespace zoo
