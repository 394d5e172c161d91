#pragma once

#include "apps/training/optimizers/optimizer.h"

namespace zoo {

/// AdamW (Loshchilov and Hutter, 2019), fused: one pass reads a gradient, clips it, and updates both moments
/// and the weight. A CPU that supports the zoo's kernels updates all parameters in one call; elsewhere
/// LibTorch's fused kernel updates them one by one.
class AdamW : public Optimizer {
 public:
  /// A derived optimizer updates those parameters itself for which holds() is false.
  AdamW(const torch::nn::Module& module, const OptimizerOptions& options, Ranks* ranks = nullptr,
        const std::function<bool(std::size_t)>& holds = {});

 protected:
  void update(const Update& update) override;

 private:
  void update_together(const Update& update, const std::vector<at::Tensor>& gradients);
  void update_by_libtorch(const Update& update, const std::vector<at::Tensor>& gradients);
  void decay_cautiously(const Update& update, double weight_decay, const std::vector<at::Tensor>& parameters,
                        const std::vector<at::Tensor>& gradients,
                        const std::vector<at::Tensor>& exp_avgs) const;

  State &exp_avgs_, &exp_avg_sqs_;
};

}  // namespace zoo
