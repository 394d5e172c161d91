#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "apps/training/grad_scaler.h"
#include "apps/training/objective.h"
#include "apps/training/optimizers/optimizer.h"
#include "apps/training/optimizers/weight_average.h"
#include "apps/training/parallel/ranks.h"

namespace zoo {

struct UpdaterOptions {
  std::int64_t accumulation = 1;      // micro steps of an update
  at::ScalarType dtype = at::kFloat;  // kBFloat16, kHalf: autocast, with float32 weights; kHalf with a scaler
  c10::Device device = c10::kCPU;
  OptimizerOptions optimizer;
  GradScaler::Options scaler;
  double ema_decay = 0;  // of a WeightAverage; 0: none
};

/// Seconds of an update by what they went into; of a GPU, to which work is only handed, those of the program.
struct UpdateTimes {
  double data = 0, forward = 0, backward = 0, optimizer = 0;
};

/// Does updates: the micro steps of each, whose losses count by their targets, so that 4 micro steps of 3
/// rows are 1 of 12; loss scaling; clipping; the optimizer; the average of the weights.
class Updater {
 public:
  /// `ranks` may be null: this process trains alone.
  Updater(Objective& objective, const UpdaterOptions& options, Ranks* ranks);

  enum class Outcome {
    kDone,
    kSkipped,      ///< a gradient overflowed in float16; the scale is lowered, the weights are as they were
    kInterrupted,  ///< `stop` said so between two micro steps; the next call goes on behind them
  };
  /// One update. Throws Error naming the tensor if a gradient is not finite (other than by float16's range);
  /// the weights are then as they were.
  Outcome run(std::int64_t iteration, double learning_rate, const std::function<bool()>& stop);

  /// The mean loss of the last update's targets, a tensor so that nothing waits for it; of this rank's part.
  const at::Tensor& loss() const { return loss_; }
  std::int64_t tokens() const { return tokens_; }      // of the last update
  const UpdateTimes& times() const { return times_; }  // the same

  /// Micro steps that an interrupted update has done.
  std::int64_t micro_steps() const { return done_; }

  Optimizer& optimizer() { return *optimizer_; }
  const Optimizer& optimizer() const { return *optimizer_; }
  WeightAverage* average() { return average_ ? &*average_ : nullptr; }
  const GradScaler* scaler() const { return scaler_ ? &*scaler_ : nullptr; }

  /// Writes and reads optimizer.safetensors and, where there are such things, average.safetensors and
  /// gradients.safetensors.
  void save(const std::filesystem::path& directory) const;
  /// `micro_steps` of the update were done when it was saved. Throws Error naming the file.
  void load(const std::filesystem::path& directory, std::int64_t micro_steps);

 private:
  double count_targets(std::int64_t iteration, std::vector<Batch>& batches);
  void backward(const Batch& batch, double share, bool last);
  Outcome apply(std::int64_t iteration, double learning_rate);
  [[noreturn]] void report_fault(std::int64_t iteration) const;

  Objective& objective_;
  UpdaterOptions options_;
  Ranks* ranks_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<GradScaler> scaler_;
  std::optional<WeightAverage> average_;
  std::int64_t done_ = 0, tokens_ = 0;
  UpdateTimes times_;
  at::Tensor loss_;
};

}  // namespace zoo
