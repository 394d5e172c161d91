#pragma once

#include "apps/training/optimizers/optimizer.h"

namespace zoo {

/// Adafactor (Shazeer and Stern, 2018, algorithms 4 and 5) as in torch.optim.Adafactor. It stores the second
/// moment of a matrix as row and column means; a step is relative to the size of the weight. The relative
/// step is min(learning rate, 1 / sqrt(step)).
class Adafactor final : public Optimizer {
 public:
  Adafactor(const torch::nn::Module& module, const OptimizerOptions& options, Ranks* ranks);

 private:
  void update(const Update& update) override;
  at::Tensor inverse_root(std::size_t i, const at::Tensor& gradient, double forget);

  State *row_means_, *column_means_, *means_;  // row and column means of matrices; means of vectors
};

}  // namespace zoo
