#pragma once

#include "apps/training/optimizers/optimizer.h"

namespace zoo {

/// Adafactor (Shazeer and Stern, 2018, algorithms 4 and 5) as in torch.optim.Adafactor. It stores the second
/// moment of a matrix as row and column means; a step is relative to the size of the weight. The relative
/// step is min(learning rate, 1 / sqrt(step)).
class Adafactor final : public Optimizer {
 public:
  struct Options {
    double beta2_decay = -0.8;        // the second moment forgets 1 - step^beta2_decay of itself
    double smallest_scale = 1e-3;     // lower bound of a weight's root mean square, which scales its steps
    double clipping_threshold = 1.0;  // for an update's root mean square
    double weight_decay = 0.0;
    double grad_clip = 1.0;
  };

  Adafactor(const torch::nn::Module& module, const Options& options, Ranks* ranks = nullptr);

 private:
  void update(const Update& update) override;
  at::Tensor inverse_root(std::size_t i, const at::Tensor& gradient, double forget);

  Options options_;
  State *row_means_, *column_means_, *means_;  // row and column means of matrices; means of vectors
};

}  // namespace zoo
