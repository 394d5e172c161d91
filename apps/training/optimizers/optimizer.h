#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "models/formats/safetensors.h"

namespace zoo {

/// Changes the weights of a module by their gradients, clipped by their common norm. Matrices and embeddings
/// are decayed; biases and norms (fewer than two dimensions) are not, as in nanoGPT.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One update. Weights without a gradient stay as they are; where a gradient is not finite all do.
  void step(double learning_rate);

  /// Drops the gradients; the next backward pass makes new ones instead of adding.
  void zero_grad();

  /// The norm of all gradients before clipping, a tensor so that nothing waits for it; undefined before
  /// step().
  const at::Tensor& gradient_norm() const { return norm_; }

  /// What it remembers of each weight ("exp_avg.NAME") and the number of steps ("step").
  NamedTensors state() const;

  /// Throws Error naming the file and the tensor that is missing or has another shape.
  void load_state(const SafetensorsFile& file);

  /// The weights that it changes, with their names.
  const NamedTensors& parameters() const { return parameters_; }

  /// The gradients that there are.
  std::vector<at::Tensor> gradients() const;

 protected:
  /// Holds the module's parameters that require a gradient. grad_clip: the largest norm of all gradients
  /// together; 0: not clipped.
  Optimizer(const torch::nn::Module& module, double grad_clip);

  /// What an update is given.
  struct Update {
    std::vector<std::size_t> active;  // numbers of the parameters that have a gradient
    double learning_rate;
    at::Tensor divisor;    // of the gradients, [], at least 1; undefined: not clipped
    at::Tensor found_inf;  // [], float32: 1 where a gradient is not finite, else 0
  };
  virtual void update(const Update& update) = 0;

  /// A tensor for each parameter, part of the state.
  struct Memory {
    std::string name;
    std::vector<at::Tensor> tensors;
  };
  /// One of the shape of each parameter, zero.
  Memory& remember(const std::string& name);

  bool decays(std::size_t i) const { return parameters_[i].second.dim() >= 2; }
  const at::Tensor& parameter(std::size_t i) const { return parameters_[i].second; }
  /// The clipped gradient, a new tensor where clipping is on.
  at::Tensor gradient(std::size_t i, const Update& update) const;

  NamedTensors parameters_;
  std::vector<std::unique_ptr<Memory>> memories_;
  at::Tensor step_;  // [], float32

 private:
  double grad_clip_;
  at::Tensor norm_;
};

enum class OptimizerKind { kAdamW, kAdafactor, kSgd, kLion };

/// "adamw", "adafactor", "sgd", "lion".
const std::vector<std::string>& optimizer_names();
/// Throws Error with the nearest name for one that is not an optimizer's.
OptimizerKind optimizer_named(const std::string& name);

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kAdamW;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;  // of AdamW; the first two of Lion
  double momentum = 0.9;                         // of SGD
  double weight_decay = 0.1;
  double grad_clip = 1.0;
};

std::unique_ptr<Optimizer> make_optimizer(const torch::nn::Module& module, const OptimizerOptions& options);

}  // namespace zoo
