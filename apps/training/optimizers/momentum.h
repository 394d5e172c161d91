#pragma once

#include "apps/training/optimizers/optimizer.h"

namespace zoo {

/// Stochastic gradient descent with momentum (Sutskever et al., 2013) as in torch.optim.SGD: weight decay is
/// part of the gradient, v = momentum v + g, w = w - lr v.
class Sgd final : public Optimizer {
 public:
  Sgd(const torch::nn::Module& module, const OptimizerOptions& options, Ranks* ranks = nullptr);

 private:
  void update(const Update& update) override;

  State& velocities_;
};

/// Lion (Chen et al., 2023, algorithm 2): w = w - lr (sign(beta1 m + (1 - beta1) g) + decay w), then
/// m = beta2 m + (1 - beta2) g. Needs half of AdamW's memory and a third to a tenth of its learning rate.
class Lion final : public Optimizer {
 public:
  Lion(const torch::nn::Module& module, const OptimizerOptions& options, Ranks* ranks = nullptr);

 private:
  void update(const Update& update) override;

  State& exp_avgs_;
};

}  // namespace zoo
