#pragma once

/// @file
/// Use:
///
///     struct Mine : zoo::Objective {  // `net` is your module, net.loss(n) the mean loss of batch n
///       torch::nn::Module& module() override { return net; }
///       zoo::Batch training(std::int64_t n) override { return {.loss = [=, this] { return net.loss(n); }}; }
///       zoo::Batch evaluation(zoo::Split, std::int64_t n) override { return training(n); }
///     };

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "apps/training/batches/batches.h"
#include "apps/training/records/metrics_log.h"

namespace zoo {

class Ranks;

/// A batch that is ready for its forward pass.
struct Batch {
  /// Number of targets that the loss averages over, its weight among the update's batches. 0: it is skipped.
  double targets = 1;
  std::int64_t tokens = 0;           // for tokens per second
  std::function<at::Tensor()> loss;  // runs the forward pass: the mean loss, [], with a graph
};

/// Defines the training of a module of any kind: its batches and their losses. Derive from it to train your
/// own torch::nn::Module; ModelObjective does so for the zoo's models.
class Objective {
 public:
  virtual ~Objective() = default;

  virtual torch::nn::Module& module() = 0;

  /// The batch of micro step number update * gradient_accumulation_steps + step within the update. It must be
  /// a pure function of this number, so that a resumed run continues bit for bit.
  virtual Batch training(std::int64_t micro_step) = 0;

  /// Batch `index` of an evaluation; the same in every evaluation.
  virtual Batch evaluation(Split split, std::int64_t index) = 0;
  virtual std::int64_t evaluation_batches(Split) const { return kUnlimitedBatches; }

  /// Name of the first non-finite tensor in the micro step's forward pass; "" if there is none or it is
  /// unknown. Called when training fails.
  virtual std::string first_bad_tensor(std::int64_t /*micro_step*/) { return ""; }

  /// The largest logit that the softmax of each attention gets in the micro step's forward pass, in the order
  /// in which a pass computes them; empty: unknown.
  virtual std::vector<double> attention_logit_maxima(std::int64_t /*micro_step*/) { return {}; }

  /// Metrics besides the loss, of the training batches computed since the last call or evaluation.
  virtual std::vector<Score> take_training_scores() { return {}; }

  /// Training goes on with these ranks, each with an equal part of a batch: a loss that depends on the rows
  /// of the whole batch gets them all, and its gradient is that of the ranks' mean. They must outlive it.
  virtual void join(Ranks& /*ranks*/) {}

  /// All that take_scores() depends on besides the loss, as sums over the evaluation batches: ranks then
  /// share the batches and add up these numbers. Empty: each rank computes every batch.
  virtual std::optional<std::vector<double*>> totals() { return std::nullopt; }

  /// Metrics besides the loss, of the evaluation batches computed since the last call.
  virtual std::vector<Score> take_scores(double /*loss*/) { return {}; }
};

}  // namespace zoo
