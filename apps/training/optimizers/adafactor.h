#pragma once

#include "apps/training/optimizers/optimizer.h"

namespace zoo {

/// Adafactor (Shazeer and Stern, 2018, algorithms 4 and 5) as torch.optim.Adafactor has it: the second moment
/// of a matrix is kept as its row and column means, and a step is relative to the size of the weight. The
/// learning rate is the largest relative step: 1 / sqrt(step) where that is smaller.
class Adafactor final : public Optimizer {
 public:
  struct Options {
    double beta2_decay = -0.8;        // the second moment forgets 1 - step^beta2_decay of itself
    double smallest_scale = 1e-3;     // of a weight, whose root mean square scales its steps
    double clipping_threshold = 1.0;  // of an update's root mean square
    double weight_decay = 0.0;
    double grad_clip = 1.0;
  };

  Adafactor(const torch::nn::Module& module, const Options& options);

 private:
  void update(const Update& update) override;
  at::Tensor inverse_root(std::size_t i, const at::Tensor& gradient, double forget);

  Options options_;
  Memory *row_means_, *column_means_, *means_;  // the first two of matrices, the last of vectors
};

}  // namespace zoo
