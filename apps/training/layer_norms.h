#pragma once

/// @file
/// Use:
///
///     const zoo::LayerMeasure measure(optimizer.parameters());
///     optimizer.step(/*learning_rate=*/1e-3);
///     for (const zoo::LayerNorms& each : measure.norms())
///       std::cout << each.layer << ": " << each.update_ratio() << "\n";

#include <string>
#include <vector>

#include "models/formats/safetensors.h"

namespace zoo {

/// Euclidean norms over all weights of a layer, for one update.
struct LayerNorms {
  std::string layer;    // "stack.blocks.3"; of a weight that is in no block, its module: "embeddings.token"
  double gradient = 0;  // before clipping
  double weight = 0;    // after the update
  double update = 0;    // of the change of the weights

  /// The share of the weights that changed; 0 if all of them are 0.
  double update_ratio() const { return weight > 0 ? update / weight : 0; }
};

/// Measures an update of weights: made before it, asked after it. Holds a copy of the weights meanwhile.
class LayerMeasure {
 public:
  /// Weights without a gradient count as unchanged, with a gradient of zero.
  explicit LayerMeasure(const NamedTensors& parameters);

  /// The layers in the order of their first weights.
  std::vector<LayerNorms> norms() const;

 private:
  const NamedTensors& parameters_;
  std::vector<at::Tensor> before_;
  std::vector<double> gradients_;  // squared norms
};

}  // namespace zoo
