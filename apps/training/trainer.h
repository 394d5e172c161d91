#pragma once

#include <functional>
#include <memory>

#include "apps/training/objective.h"
#include "apps/training/optimizers/schedule.h"
#include "apps/training/records/metrics_log.h"
#include "apps/training/records/run_directory.h"
#include "apps/training/updater.h"

namespace zoo {

struct TrainerOptions {
  std::int64_t max_iters = 2000;
  std::int64_t eval_interval = 250;
  std::int64_t eval_iters = 200;  // batches of a split; fewer where there are not so many
  std::int64_t log_interval = 10;
  bool always_save_checkpoint = true;  // false: a step checkpoint only where the validation loss improves
  std::int64_t patience = 0;  // evaluations in a row without a better loss that end the training; 0: none do
  std::uint64_t seed = 1337;
  Schedule schedule;
  UpdaterOptions updater;
  /// Writes a step checkpoint's model where that is another than best/ and final/ hold (adapters apart).
  std::function<void(const std::filesystem::path&)> save_step;
  Ranks* ranks = nullptr;  // who trains along; must outlive the trainer
};

/// The mean losses of an evaluation, before the update of `iter`, and the figures of the validation split.
struct Evaluation {
  std::int64_t iter = 0;
  double train_loss = 0, val_loss = 0;
  std::vector<Score> val_scores;
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
  /// Asked after each micro step; true ends the training with a checkpoint.
  virtual bool stop() { return false; }
};

/// The mean loss over batches of a split, by their targets, and its scores. `on_step` is told how many are
/// done.
struct SplitEvaluation {
  double loss = 0;
  std::vector<Score> scores;
};
SplitEvaluation evaluate_split(Objective& objective, Split split, std::int64_t batches,
                               const UpdaterOptions& precision,
                               const std::function<void(std::int64_t)>& on_step);

/// Trains an objective: schedule, accumulation, clipping, mixed precision, evaluation, checkpoints from which
/// it continues bit for bit.
class Trainer {
 public:
  /// Writes what a checkpoint holds beside the optimizer's state: the model itself, its tokenizer.
  using SaveModel = std::function<void(const std::filesystem::path&)>;

  /// The objective must outlive it.
  Trainer(Objective& objective, RunDirectory run, SaveModel save_model, const TrainerOptions& options);

  /// Continues from `run`'s checkpoint of this iteration: optimizer, generators, best loss. The module must
  /// already have the checkpoint's weights. Throws Error naming the file that does not fit.
  void resume(std::int64_t iteration);

  struct Result {
    bool finished = false;  // false: the observer stopped it
    std::int64_t iterations = 0;
    double best_val_loss = 0, final_val_loss = 0;
  };

  /// Throws Error when the loss or a gradient is no longer finite, or a checkpoint cannot be written; the
  /// last one stays.
  Result train(TrainingObserver& observer);

 private:
  class Clock;
  class Record;

  bool writes() const { return options_.ranks == nullptr || options_.ranks->rank() == 0; }
  void seed_rank(std::int64_t iteration) const;
  bool stopped(TrainingObserver& observer) const;
  void evaluate(std::int64_t iteration, TrainingObserver& observer);
  void evaluate_weights(std::int64_t iteration, TrainingObserver& observer);
  void checkpoint(std::int64_t iteration, TrainingObserver& observer);
  Metrics metrics(std::int64_t iteration, double loss, Clock& clock) const;
  double last_loss() const;
  Result finish(std::int64_t iteration, Record* record, Clock& clock, TrainingObserver& observer);

  Objective& objective_;
  RunDirectory run_;
  SaveModel save_model_;
  TrainerOptions options_;
  Updater updater_;
  // Iteration 0 is not counted: weights that nothing has trained are no standard.
  std::int64_t first_iteration_ = 0, stale_evaluations_ = 0, counted_evaluation_ = 0;
  double best_val_loss_;
  Evaluation last_evaluation_;
};

}  // namespace zoo
