#include "apps/training/optimizers/adamw.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/empty_like.h>

#include "apps/training/parallel/tensor_parts.h"
#include "models/kernels/training/adamw.h"

namespace zoo {

AdamW::AdamW(const torch::nn::Module& module, const OptimizerOptions& options, Ranks* ranks,
             const std::function<bool(std::size_t)>& holds)
    : Optimizer(module, options, ranks),
      exp_avgs_(add_state("exp_avg", holds)),
      exp_avg_sqs_(add_state("exp_avg_sq", holds)) {}

void AdamW::update(const Update& update) {
  std::vector<at::Tensor> parameters, gradients;
  for (const std::size_t i : update.active) {
    const at::Tensor &weight = parameter(i), &gradient = weight.grad();
    parameters.push_back(weight);
    // Both kernels walk through contiguous memory and ignore strides.
    gradients.push_back(gradient.strides() == weight.strides() ? gradient
                                                               : at::empty_like(weight).copy_(gradient));
  }
  if (suit_kernels(parameters) && suit_kernels(gradients)) {
    update_together(update, gradients);
  } else {
    update_by_libtorch(update, gradients);
  }
}

void AdamW::update_together(const Update& update, const std::vector<at::Tensor>& gradients) {
  if (update.found_inf.item<float>() != 0) return;
  const double step = step_.item<double>(), rate = update.learning_rate;
  const auto update_of = [&](bool decayed) {
    return kernels::AdamWUpdate{
        .beta2 = static_cast<float>(options_.beta2),
        .one_minus_beta1 = static_cast<float>(1 - options_.beta1),
        .one_minus_beta2 = static_cast<float>(1 - options_.beta2),
        .eps = static_cast<float>(options_.eps),
        .kept = static_cast<float>(decayed ? 1 - rate * update.decay_share * options_.weight_decay : 1.0),
        .cautious = options_.cautious_weight_decay,
        .step_size = static_cast<float>(rate / (1 - std::pow(options_.beta1, step))),
        .square_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(options_.beta2, step))),
        .divisor = update.divisor.defined() ? update.divisor.item<float>() : 1.0F};
  };
  const kernels::AdamWUpdate of_decayed = update_of(true), of_others = update_of(false);
  const std::vector<TensorPart> parts = parts_of(gradients);
  for_each_part(parts, [&](std::size_t number) {
    const TensorPart& part = parts[number];
    const std::size_t i = update.active[part.tensor];
    kernels::adamw(decays(i) ? of_decayed : of_others,
                   {.weight = parameter(i).mutable_data_ptr<float>() + part.first,
                    .gradient = gradients[part.tensor].const_data_ptr<float>() + part.first,
                    .exp_avg = exp_avgs_.tensors[i].mutable_data_ptr<float>() + part.first,
                    .exp_avg_sq = exp_avg_sqs_.tensors[i].mutable_data_ptr<float>() + part.first},
                   part.size);
  });
}

void AdamW::update_by_libtorch(const Update& update, const std::vector<at::Tensor>& all_gradients) {
  // The kernel divides the gradients by this: max(norm / grad_clip, 1) clips them without another pass.
  const auto grad_scale = update.divisor.defined() ? std::optional<at::Tensor>(update.divisor) : std::nullopt;
  for (const bool decayed : {true, false}) {
    std::vector<at::Tensor> parameters, gradients, exp_avgs, exp_avg_sqs;
    for (std::size_t k = 0; k < update.active.size(); ++k) {
      const std::size_t i = update.active[k];
      if (decays(i) != decayed) continue;
      parameters.push_back(parameter(i));
      gradients.push_back(all_gradients[k]);
      exp_avgs.push_back(exp_avgs_.tensors[i]);
      exp_avg_sqs.push_back(exp_avg_sqs_.tensors[i]);
    }
    if (parameters.empty()) continue;
    double weight_decay = decayed ? update.decay_share * options_.weight_decay : 0.0;
    if (options_.cautious_weight_decay && weight_decay > 0) {
      decay_cautiously(update, weight_decay, parameters, gradients, exp_avgs);
      weight_decay = 0;
    }
    const std::vector<at::Tensor> steps(parameters.size(), step_);
    at::_fused_adamw_(parameters, gradients, exp_avgs, exp_avg_sqs, /*max_exp_avg_sqs=*/{}, steps,
                      update.learning_rate, options_.beta1, options_.beta2, weight_decay, options_.eps,
                      /*amsgrad=*/false, /*maximize=*/false, grad_scale, update.found_inf);
  }
}

// Before the kernel's step, whose sign is that of the first moment to come.
void AdamW::decay_cautiously(const Update& update, double weight_decay,
                             const std::vector<at::Tensor>& parameters,
                             const std::vector<at::Tensor>& gradients,
                             const std::vector<at::Tensor>& exp_avgs) const {
  const at::Tensor lost = update.learning_rate * weight_decay * (1 - update.found_inf);
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const at::Tensor g = update.divisor.defined() ? gradients[k] / update.divisor : gradients[k];
    const at::Tensor agrees = (exp_avgs[k].lerp(g, 1 - options_.beta1) * parameters[k]).ge(0);
    parameters[k].mul_(1 - lost * agrees);
  }
}

}  // namespace zoo
