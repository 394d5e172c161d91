#pragma once

#include <torch/nn/module.h>

#include "models/formats/safetensors.h"

namespace zoo {

/// An exponential moving average of a module's parameters (Polyak and Juditsky, 1992): after each update
/// average = decay average + (1 - decay) weight. It is what is evaluated and handed on, since it is less
/// noisy than the last weights.
class WeightAverage {
 public:
  /// Begins with the present weights. decay in (0, 1).
  WeightAverage(const torch::nn::Module& module, double decay);

  /// After an update of the weights.
  void update();

  /// Exchanges the module's weights and the average.
  void swap();

  /// The averages by the parameters' names.
  const NamedTensors& state() const { return averages_; }
  /// Throws Error naming the file and the tensor that is missing or has another shape.
  void load_state(const SafetensorsFile& file);

 private:
  double decay_;
  NamedTensors averages_;
  std::vector<at::Tensor> weights_, average_tensors_;
};

/// While it lives the module has the average as its weights; of no average, its own.
class AverageScope {
 public:
  explicit AverageScope(WeightAverage* average) : average_(average) {
    if (average_ != nullptr) average_->swap();
  }
  ~AverageScope() {
    if (average_ != nullptr) average_->swap();
  }
  AverageScope(const AverageScope&) = delete;
  AverageScope& operator=(const AverageScope&) = delete;

 private:
  WeightAverage* average_;
};

}  // namespace zoo
