#pragma once

#include "apps/training/optimizers/optimizer.h"

namespace zoo {

/// AdamW (Loshchilov and Hutter, 2019) in one pass, which reads a gradient, clips it, and updates both
/// moments and the weight: over all parameters together on a CPU that has the kernels, over one after the
/// other by LibTorch's fused kernel elsewhere.
class AdamW final : public Optimizer {
 public:
  struct Options {
    double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
    double weight_decay = 0.1;
    double grad_clip = 1.0;
  };

  AdamW(const torch::nn::Module& module, const Options& options);

 private:
  void update(const Update& update) override;
  void update_together(const Update& update, const std::vector<at::Tensor>& gradients);
  void update_by_libtorch(const Update& update, const std::vector<at::Tensor>& gradients);

  Options options_;
  Memory &exp_avgs_, &exp_avg_sqs_;
};

}  // namespace zoo
