#pragma once

/// @file
/// Use:
///
///     zoo::WeightAverage average(module, /*decay=*/0.999);
///     average.update();                         // after each update of the weights
///     const zoo::AverageScope scope(&average);  // the module has the averages until the scope ends

#include <torch/nn/module.h>

#include "models/formats/safetensors.h"

namespace zoo {

/// Copies the file's tensors of these names. Throws Error naming the file and one that is missing or has
/// another shape.
void load_tensors(const SafetensorsFile& file, const NamedTensors& tensors);

/// Exponential moving average of a module's parameters (Polyak and Juditsky, 1992): after each update average
/// = decay average + (1 - decay) weight. Evaluation and saved models use the average, because it is less
/// noisy than the last weights.
class WeightAverage {
 public:
  /// Starts from the current weights. decay in (0, 1).
  WeightAverage(const torch::nn::Module& module, double decay);

  /// Call after each update of the weights.
  void update();

  /// Swaps the module's weights and the average.
  void swap();

  /// The averages by parameter name.
  const NamedTensors& state() const { return averages_; }
  /// Throws Error naming the file and a tensor that is missing or has another shape.
  void load_state(const SafetensorsFile& file) { load_tensors(file, averages_); }

 private:
  double decay_;
  NamedTensors averages_;
  std::vector<at::Tensor> weights_, average_tensors_;
};

/// While in scope, the module's weights are the average; with a null average they stay unchanged.
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
