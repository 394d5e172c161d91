#include "apps/training/optimizers/momentum.h"

namespace zoo {

Sgd::Sgd(const torch::nn::Module& module, const OptimizerOptions& options, Ranks* ranks)
    : Optimizer(module, options, ranks), velocities_(add_state("momentum")) {}

void Sgd::update(const Update& update) {
  if (update.found_inf.item<float>() != 0) return;
  const double momentum = options_.momentum.value_or(0.9);
  for (const std::size_t i : update.active) {
    at::Tensor g = gradient(i, update);
    if (decays(i) && options_.weight_decay > 0)
      g = g.add(parameter(i), update.decay_share * options_.weight_decay);
    velocities_.tensors[i].mul_(momentum).add_(g);
    parameter(i).sub_(velocities_.tensors[i], update.learning_rate);
  }
}

Lion::Lion(const torch::nn::Module& module, const OptimizerOptions& options, Ranks* ranks)
    : Optimizer(module, options, ranks), exp_avgs_(add_state("exp_avg")) {}

void Lion::update(const Update& update) {
  if (update.found_inf.item<float>() != 0) return;
  for (const std::size_t i : update.active) {
    const at::Tensor g = gradient(i, update);
    if (decays(i)) parameter(i).mul_(1 - update.learning_rate * update.decay_share * options_.weight_decay);
    const at::Tensor direction = exp_avgs_.tensors[i].lerp(g, 1 - options_.beta1).sign_();
    parameter(i).sub_(direction, update.learning_rate);
    exp_avgs_.tensors[i].lerp_(g, 1 - options_.beta2);
  }
}

}  // namespace zoo
