#pragma once

#include <functional>
#include <memory>

#include "apps/training/adamw.h"
#include "apps/training/batches.h"
#include "apps/training/disagreement_loss.h"
#include "apps/training/metrics_log.h"
#include "apps/training/run_directory.h"
#include "apps/training/schedule.h"
#include "models/model.h"

namespace zoo {

struct TrainerOptions {
  std::int64_t max_iters = 2000;
  std::int64_t gradient_accumulation_steps = 1;
  std::int64_t eval_interval = 250;
  std::int64_t eval_iters = 200;
  std::int64_t log_interval = 10;
  bool always_save_checkpoint = true;  // false: a step checkpoint only where the validation loss improves
  std::uint64_t seed = 1337;
  at::ScalarType dtype = at::kFloat;  // kBFloat16: autocast
  c10::Device device = c10::kCPU;
  Disagreement disagreement = Disagreement::kNone;  // added to the loss of training, not of evaluation
  double disagreement_weight = 0.1;
  Schedule schedule;
  AdamW::Options adamw;
};

/// The mean losses of an evaluation, before the update of `iter`.
struct Evaluation {
  std::int64_t iter = 0;
  double train_loss = 0, val_loss = 0;
  bool best = false;
};

/// Who is told how a training goes. All calls come from the thread that trains.
class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;
  virtual void on_iteration(std::int64_t /*done*/) {}
  virtual void on_evaluation_step(std::int64_t /*done*/, std::int64_t /*all*/) {}
  virtual void on_metrics(const Metrics&) {}
  virtual void on_evaluation(const Evaluation&) {}
  virtual void on_checkpoint(const std::filesystem::path&) {}
  /// Asked after each iteration; true ends the training with a checkpoint.
  virtual bool stop() { return false; }
};

/// Trains a model: warm-up and decay, accumulation, clipping, fused AdamW, evaluation, checkpoints from which
/// it continues bit for bit.
class Trainer {
 public:
  /// Writes what a checkpoint holds beside the optimizer's state: the model itself, its tokenizer.
  using SaveModel = std::function<void(const std::filesystem::path&)>;

  Trainer(std::shared_ptr<Model> model, Batches& batches, RunDirectory run, SaveModel save_model,
          const TrainerOptions& options);

  /// Continues from `run`'s checkpoint of this iteration: optimizer, generators, best loss. The model must
  /// already have the checkpoint's weights. Throws Error naming the file that does not fit.
  void resume(std::int64_t iteration);

  struct Result {
    bool finished = false;  // false: the observer stopped it
    std::int64_t iterations = 0;
    double best_val_loss = 0, final_val_loss = 0;
  };

  /// Throws Error when the loss is no longer finite, or a checkpoint cannot be written; the last one stays.
  Result train(TrainingObserver& observer);

 private:
  class Clock;

  double update(std::int64_t iteration, bool wants_loss);
  void evaluate(std::int64_t iteration, TrainingObserver& observer);
  double mean_loss(Split split, TrainingObserver& observer);
  void checkpoint(std::int64_t iteration, TrainingObserver& observer);
  void save_state(std::int64_t iteration, const std::filesystem::path& directory) const;
  Metrics metrics(std::int64_t iteration, double loss, Clock& clock) const;

  std::shared_ptr<Model> model_;
  DisagreementLoss disagreement_;
  Batches& batches_;
  RunDirectory run_;
  SaveModel save_model_;
  TrainerOptions options_;
  AdamW optimizer_;
  std::int64_t first_iteration_ = 0;
  double best_val_loss_;
  Evaluation last_evaluation_;
};

}  // namespace zoo
