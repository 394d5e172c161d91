#include "apps/training/adamw.h"

#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "data/base/error.h"

namespace zoo {

AdamW::AdamW(const torch::nn::Module& module, const Options& options) : options_(options) {
  groups_.resize(2);
  groups_[0].weight_decay = options.weight_decay;
  groups_[1].weight_decay = 0.0;
  for (const auto& entry : module.named_parameters()) {
    if (entry.value().requires_grad())
      add(entry.key(), entry.value(), groups_[entry.value().dim() >= 2 ? 0 : 1]);
  }
  TORCH_CHECK(!groups_[0].parameters.empty() || !groups_[1].parameters.empty(),
              "the model has nothing to train");
  const Group& first = groups_[groups_[0].parameters.empty() ? 1 : 0];
  step_ = at::zeros({}, first.parameters[0].options().dtype(at::kFloat).requires_grad(false));
}

void AdamW::add(const std::string& name, const at::Tensor& parameter, Group& group) {
  group.names.push_back(name);
  group.parameters.push_back(parameter);
  group.exp_avgs.push_back(at::zeros_like(parameter.detach()));
  group.exp_avg_sqs.push_back(at::zeros_like(parameter.detach()));
}

void AdamW::step(double learning_rate) {
  const at::NoGradGuard no_grad;
  const at::Tensor divisor = clip_divisor();
  const auto grad_scale = divisor.defined() ? std::optional<at::Tensor>(divisor) : std::nullopt;
  step_.add_(1);
  for (Group& group : groups_) {
    std::vector<at::Tensor> parameters, gradients, exp_avgs, exp_avg_sqs;
    for (std::size_t i = 0; i < group.parameters.size(); ++i) {
      if (!group.parameters[i].grad().defined()) continue;
      parameters.push_back(group.parameters[i]);
      gradients.push_back(group.parameters[i].grad());
      exp_avgs.push_back(group.exp_avgs[i]);
      exp_avg_sqs.push_back(group.exp_avg_sqs[i]);
    }
    if (parameters.empty()) continue;
    const std::vector<at::Tensor> steps(parameters.size(), step_);
    at::_fused_adamw_(parameters, gradients, exp_avgs, exp_avg_sqs, /*max_exp_avg_sqs=*/{}, steps,
                      learning_rate, options_.beta1, options_.beta2, group.weight_decay, options_.eps,
                      /*amsgrad=*/false,
                      /*maximize=*/false, grad_scale, /*found_inf=*/std::nullopt);
  }
}

// The kernel divides gradients by a scale on its way: max(norm / grad_clip, 1) clips without a pass of its
// own.
at::Tensor AdamW::clip_divisor() {
  if (options_.grad_clip <= 0) return {};
  std::vector<at::Tensor> gradients;
  for (const Group& group : groups_) {
    for (const at::Tensor& parameter : group.parameters) {
      if (parameter.grad().defined()) gradients.push_back(parameter.grad());
    }
  }
  if (gradients.empty()) return {};
  norm_ = at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients)));
  // The small term is that of torch.nn.utils.clip_grad_norm_.
  return ((norm_ + 1e-6) / options_.grad_clip).clamp_min_(1.0);
}

void AdamW::zero_grad() {
  for (Group& group : groups_) {
    for (at::Tensor& parameter : group.parameters) parameter.mutable_grad().reset();
  }
}

NamedTensors AdamW::state() const {
  NamedTensors tensors;
  for (const Group& group : groups_) {
    for (std::size_t i = 0; i < group.names.size(); ++i) {
      tensors.emplace_back("exp_avg." + group.names[i], group.exp_avgs[i]);
      tensors.emplace_back("exp_avg_sq." + group.names[i], group.exp_avg_sqs[i]);
    }
  }
  tensors.emplace_back("step", step_);
  return tensors;
}

void AdamW::load_state(const SafetensorsFile& file) {
  const at::NoGradGuard no_grad;
  for (auto& [name, tensor] : state()) {
    const auto& entry = file.entry(name);
    if (tensor.sizes() != at::IntArrayRef(entry.shape) || tensor.scalar_type() != entry.dtype) {
      throw Error(file.path(), ": tensor '", name, "' has another shape or type than the model's parameter");
    }
    tensor.copy_(file.tensor(name));
  }
}

}  // namespace zoo
