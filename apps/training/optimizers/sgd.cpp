#include "apps/training/optimizers/sgd.h"

namespace zoo {

Sgd::Sgd(const torch::nn::Module& module, const Options& options, Ranks* ranks)
    : Optimizer(module, options.grad_clip, ranks), options_(options), velocities_(add_state("momentum")) {}

void Sgd::update(const Update& update) {
  if (update.found_inf.item<float>() != 0) return;
  for (const std::size_t i : update.active) {
    at::Tensor g = gradient(i, update);
    if (decays(i) && options_.weight_decay > 0) g = g.add(parameter(i), options_.weight_decay);
    velocities_.tensors[i].mul_(options_.momentum).add_(g);
    parameter(i).sub_(velocities_.tensors[i], update.learning_rate);
  }
}

}  // namespace zoo
