#include "apps/training/optimizers/momentum.h"

namespace zoo {

Sgd::Sgd(const torch::nn::Module& module, const Options& options, Ranks* ranks)
    : Optimizer(module, options.grad_clip, ranks), options_(options), velocities_(add_state("momentum")) {}

void Sgd::update(const Update& update) {
  if (update.found_inf.item<float>() != 0) return;
  for (const std::size_t i : update.active) {
    at::Tensor g = gradient(i, update);
    if (decays(i) && options_.weight_decay > 0)
      g = g.add(parameter(i), update.decay_share * options_.weight_decay);
    velocities_.tensors[i].mul_(options_.momentum).add_(g);
    parameter(i).sub_(velocities_.tensors[i], update.learning_rate);
  }
}

Lion::Lion(const torch::nn::Module& module, const Options& options, Ranks* ranks)
    : Optimizer(module, options.grad_clip, ranks), options_(options), exp_avgs_(add_state("exp_avg")) {}

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
