#pragma once

#include <functional>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "apps/training/batches/batches.h"
#include "apps/training/records/metrics_log.h"

namespace zoo {

/// A batch that is ready to be computed.
struct Batch {
  /// How many targets the loss is the mean over: its weight beside the update's other batches. 0: the batch
  /// is left out.
  double targets = 1;
  std::int64_t tokens = 0;           // for tokens per second
  std::function<at::Tensor()> loss;  // the forward pass: the mean loss, [], with a graph
};

/// What a Trainer trains: a module of any kind, and how its batches become losses. A program derives it for a
/// torch::nn::Module of its own; ModelObjective is that of the zoo's models.
class Objective {
 public:
  virtual ~Objective() = default;

  virtual torch::nn::Module& module() = 0;

  /// The batch of a micro step: update * gradient_accumulation_steps + the step within the update. It must be
  /// a pure function of its number, so that a resumed run continues bit for bit.
  virtual Batch training(std::int64_t micro_step) = 0;

  /// Batch `index` of an evaluation; the same each time.
  virtual Batch evaluation(Split split, std::int64_t index) = 0;
  virtual std::int64_t evaluation_batches(Split) const { return kUnlimitedBatches; }

  /// The name of the first tensor of the micro step's forward pass that is not finite; "" if there is none or
  /// nobody knows. Asked when a training fails.
  virtual std::string first_bad_tensor(std::int64_t /*micro_step*/) { return ""; }

  /// Figures besides the loss, of the evaluation's batches that were computed since the last call.
  virtual std::vector<Score> take_scores(double /*loss*/) { return {}; }
};

}  // namespace zoo
