#include "apps/training/adamw.h"

#include <ATen/ops/_fused_adamw.h>

namespace zoo {

AdamW::AdamW(const torch::nn::Module& module, const Options& options)
    : Optimizer(module, options.grad_clip),
      options_(options),
      exp_avgs_(remember("exp_avg")),
      exp_avg_sqs_(remember("exp_avg_sq")) {}

void AdamW::update(const Update& update) {
  // The kernel divides gradients by a scale on its way: max(norm / grad_clip, 1) clips without a pass of its
  // own.
  const auto grad_scale = update.divisor.defined() ? std::optional<at::Tensor>(update.divisor) : std::nullopt;
  for (const bool decayed : {true, false}) {
    std::vector<at::Tensor> parameters, gradients, exp_avgs, exp_avg_sqs;
    for (const std::size_t i : update.active) {
      if (decays(i) != decayed) continue;
      parameters.push_back(parameter(i));
      gradients.push_back(parameter(i).grad());
      exp_avgs.push_back(exp_avgs_.tensors[i]);
      exp_avg_sqs.push_back(exp_avg_sqs_.tensors[i]);
    }
    if (parameters.empty()) continue;
    const std::vector<at::Tensor> steps(parameters.size(), step_);
    at::_fused_adamw_(parameters, gradients, exp_avgs, exp_avg_sqs, /*max_exp_avg_sqs=*/{}, steps,
                      update.learning_rate, options_.beta1, options_.beta2,
                      decayed ? options_.weight_decay : 0.0, options_.eps, /*amsgrad=*/false,
                      /*maximize=*/false, grad_scale, update.found_inf);
  }
}

}  // namespace zoo
