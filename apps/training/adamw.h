#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "models/io/safetensors.h"

namespace zoo {

/// AdamW (Loshchilov and Hutter, 2019) by LibTorch's fused kernel: one pass over a parameter reads its
/// gradient, clips it, and updates both moments and the weight. Matrices and embeddings are decayed; biases
/// and norms (fewer than two dimensions) are not, as in nanoGPT.
class AdamW {
 public:
  struct Options {
    double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
    double weight_decay = 0.1;
    double grad_clip = 1.0;  // largest norm of all gradients together; 0: not clipped
  };

  /// Holds the module's parameters that require a gradient.
  AdamW(const torch::nn::Module& module, const Options& options);

  /// One update from the gradients. Parameters without a gradient stay as they are.
  void step(double learning_rate);

  /// Drops the gradients; the next backward pass makes new ones instead of adding.
  void zero_grad();

  /// The norm of all gradients before clipping, a tensor so that nothing waits for it; undefined before
  /// step() or without clipping.
  const at::Tensor& gradient_norm() const { return norm_; }

  /// Both moments of every parameter ("exp_avg.NAME", "exp_avg_sq.NAME") and the number of steps ("step").
  NamedTensors state() const;

  /// Throws Error naming the file and the tensor that is missing or has another shape.
  void load_state(const SafetensorsFile& file);

 private:
  struct Group {
    double weight_decay;
    std::vector<std::string> names;
    std::vector<at::Tensor> parameters, exp_avgs, exp_avg_sqs;
  };

  void add(const std::string& name, const at::Tensor& parameter, Group& group);
  at::Tensor clip_divisor();

  Options options_;
  std::vector<Group> groups_;
  at::Tensor step_, norm_;
};

}  // namespace zoo
