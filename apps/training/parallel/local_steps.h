#pragma once

/// @file
/// Use:
///
///     zoo::LocalSteps local(module, {.steps = 8}, ranks);
///     for (std::int64_t i = 0; i < 800; ++i) {
///       updater.run(i, 1e-3, stop);  // an Updater without ranks
///       local.after_update(i + 1);
///     }

#include <torch/nn/module.h>

#include "apps/training/optimizers/weight_average.h"
#include "apps/training/parallel/ranks.h"

namespace zoo {

struct LocalStepsOptions {
  std::int64_t steps = 0;  // updates of a round; 0: gradients are averaged in each update instead
  double learning_rate = 0.7, momentum = 0.9;  // of the outer update
  bool operator==(const LocalStepsOptions&) const = default;
};

/// DiLoCo (Douillard et al., 2023, algorithm 1): in a round each rank makes `steps` updates by itself, with
/// its own optimizer. Then the differences d = common - local are averaged over the ranks, and SGD with
/// Nesterov's momentum moves the common weights, from which all go on:
///   v = momentum v + d,  common = common - learning_rate (d + momentum v)
/// A learning rate of 1 without momentum gives the mean of the ranks' weights.
class LocalSteps {
 public:
  /// The weights are the common ones, equal on all ranks. `ranks` may be null for a single process.
  LocalSteps(const torch::nn::Module& module, const LocalStepsOptions& options, Ranks* ranks);

  /// Call after each update with their number so far; the last of a round is followed by the outer update.
  void after_update(std::int64_t done);

  /// The weights with which the round began.
  WeightAverage& common() { return common_; }

  /// After `done` updates: v as "outer_momentum.NAME", equal on all ranks, and inside of a round the rank's
  /// own weights as "local.NAME".
  NamedTensors state(std::int64_t done) const;
  /// Into state()'s memory. Throws Error naming the file and a tensor that is missing or has another shape.
  void load_state(const SafetensorsFile& file, std::int64_t done) const { load_tensors(file, state(done)); }

 private:
  bool in_round(std::int64_t done) const { return done % options_.steps != 0; }

  LocalStepsOptions options_;
  Ranks* ranks_;
  WeightAverage common_;
  NamedTensors weights_, momentum_;
};

}  // namespace zoo
