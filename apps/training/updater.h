#pragma once

/// @file
/// Use:
///
///     zoo::Updater updater(objective, {.accumulation = 4}, /*ranks=*/nullptr);
///     for (std::int64_t i = 0; i < 100; ++i) updater.run(i, /*learning_rate=*/1e-3, [] { return false; });
///     std::cout << updater.loss().item<double>() << "\n";

#include <functional>
#include <memory>
#include <optional>

#include "apps/training/layer_norms.h"
#include "apps/training/mixed_precision.h"
#include "apps/training/objective.h"
#include "apps/training/optimizers/optimizer.h"
#include "apps/training/optimizers/weight_average.h"
#include "apps/training/parallel/local_steps.h"
#include "apps/training/parallel/ranks.h"
#include "apps/training/parallel/shards.h"

namespace zoo {

struct UpdaterOptions {
  std::int64_t accumulation = 1;      // micro steps per update
  at::ScalarType dtype = at::kFloat;  // kBFloat16, kHalf: autocast, float32 weights; kHalf: scaled loss
  c10::Device device = c10::kCPU;
  OptimizerOptions optimizer;
  GradScaler::Options scaler;
  double ema_decay = 0;               // of the WeightAverage; 0: none
  std::int64_t optimizer_shares = 1;  // ranks that share the optimizer's state: 1, or all
  Shard shard = Shard::kOptimizer;    // what they share, if they share it
  LocalStepsOptions local;            // updates of each rank by itself
};

/// Seconds per part of an update; on a GPU, the time to launch the work.
struct UpdateTimes {
  double data = 0, forward = 0, backward = 0, optimizer = 0;
};

/// Performs updates: micro steps, loss scaling, clipping, the optimizer, the average of the weights. Losses
/// are weighted by their targets: 4 micro steps of 3 rows equal 1 of 12.
class Updater {
 public:
  /// `ranks` may be null for a single process. Throws FieldError for an option that is out of its range.
  Updater(Objective& objective, const UpdaterOptions& options, Ranks* ranks);

  enum class Outcome {
    kDone,
    kSkipped,      ///< a float16 gradient overflowed; the scale is lowered, the weights are unchanged
    kInterrupted,  ///< `stop` returned true between two micro steps; the next call continues after them
  };
  /// One update, with this share of the weight decay; `layers` receives its norms unless it is null, nothing
  /// unless kDone. Throws Error naming the tensor if a gradient is not
  /// finite (except for float16 overflow); the weights are then unchanged.
  Outcome run(std::int64_t iteration, double learning_rate, const std::function<bool()>& stop,
              double decay_share = 1.0, std::vector<LayerNorms>* layers = nullptr);

  /// Mean loss over this rank's targets in the last update; a tensor, so that nothing waits for it.
  const at::Tensor& loss() const { return loss_; }
  std::int64_t tokens() const { return tokens_; }      // in the last update
  const UpdateTimes& times() const { return times_; }  // of the last update

  /// Finished micro steps of an interrupted update.
  std::int64_t micro_steps() const { return done_; }

  Optimizer& optimizer() { return *optimizer_; }
  const Optimizer& optimizer() const { return *optimizer_; }
  WeightAverage* average() { return average_ ? &*average_ : nullptr; }
  /// The common weights; null without local steps.
  WeightAverage* common() { return local_ ? &local_->common() : nullptr; }
  /// What lies with its owner alone besides the optimizer's state; null: nothing.
  Shards* shards() const { return shards_.get(); }
  const GradScaler* scaler() const { return scaler_ ? &*scaler_ : nullptr; }

  /// What `done` updates have made of the optimizer and the loss scale; of local steps also the momentum, and
  /// inside of a round the rank's weights. All ranks call it.
  NamedTensors state(std::int64_t done) const;
  /// Of several ranks rank 0 writes, the others send it their states. Files: optimizer.safetensors, with
  /// local steps optimizer-1.safetensors and so on of the other ranks, and, if present, average.safetensors
  /// and gradients.safetensors.
  void save(const std::filesystem::path& directory, const NamedTensors& state) const;
  void send_state(const NamedTensors& state) const {
    for (std::int64_t rank = 1; local_ && rank < ranks_->size(); ++rank) state_of(rank, state);
  }
  /// `done` updates and `micro_steps` of the next were finished at the save. Throws Error naming the file.
  void load(const std::filesystem::path& directory, std::int64_t done, std::int64_t micro_steps);

 private:
  // That average gradients in each update; null with local steps.
  Ranks* averaging() const { return options_.local.steps > 0 ? nullptr : ranks_; }
  double count_targets(std::int64_t iteration, std::vector<Batch>& batches);
  void backward(const Batch& batch, double share, bool last);
  Outcome apply(std::int64_t iteration, double learning_rate, double decay_share,
                std::vector<LayerNorms>* layers);
  NamedTensors state_of(std::int64_t rank, const NamedTensors& own) const;
  std::string largest_gradient() const;
  std::string fault() const;
  [[noreturn]] void report_fault(std::int64_t iteration) const;

  Objective& objective_;
  UpdaterOptions options_;
  Ranks* ranks_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Shards> shards_;
  std::optional<GradScaler> scaler_;
  std::optional<WeightAverage> average_;
  std::optional<LocalSteps> local_;
  std::int64_t done_ = 0, tokens_ = 0;
  UpdateTimes times_;
  at::Tensor loss_;
};

}  // namespace zoo
