#pragma once

/// @file
/// Use:
///
///     zoo::ModelObjective objective(model, batches);  // or an Objective of your own
///     const auto save = [&](const std::filesystem::path& to) { zoo::save_model(*model, family, head, to); };
///     zoo::Trainer trainer(objective, zoo::RunDirectory("runs/mine", /*keep=*/2), save, {.max_iters = 500});
///     zoo::TrainingObserver quiet;
///     std::cout << trainer.train(quiet).final_val_loss << "\n";

#include <functional>
#include <limits>

#include "apps/training/objective.h"
#include "apps/training/optimizers/schedule.h"
#include "apps/training/records/metrics_log.h"
#include "apps/training/records/run_directory.h"
#include "apps/training/updater.h"

namespace zoo {

struct TrainerOptions {
  std::int64_t max_iters = 2000;
  std::int64_t eval_interval = 250;
  std::int64_t eval_iters = 200;  // batches per split; fewer if the split has fewer
  std::int64_t log_interval = 10;
  bool layer_norms = false;            // of each logged update; copies the weights
  bool always_save_checkpoint = true;  // false: only when the validation loss improves
  std::int64_t patience = 0;           // stop after this many evaluations without a lower loss; 0: never
  std::uint64_t seed = 1337;
  std::string data_sha256;  // written into checkpoints
  Schedule schedule;
  UpdaterOptions updater;
  /// Writes a step checkpoint's model if it differs from best/ and final/ (separate adapters).
  std::function<void(const std::filesystem::path&)> save_step;
  Ranks* ranks = nullptr;  // other training processes; must outlive the trainer
};

/// Throws UnfitField for an option that does not fit what the ranks divide beyond the optimizer's state.
void require_fit_of_shards(const UpdaterOptions& options, bool layer_norms);

/// Throws UnfitField if an evaluation would be inside of a round of local steps, and for other options
/// that do not fit them.
void require_rounds(const TrainerOptions& options);

/// Mean losses of an evaluation before the update of `iter`, and metrics of the validation split.
struct Evaluation {
  std::int64_t iter = 0;
  double train_loss = 0, val_loss = 0;
  std::vector<Score> val_scores;
  bool best = false;
};

/// Callbacks for training progress. All calls come from the training thread.
class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;
  /// Also at the start, with the iterations of earlier runs.
  virtual void on_iteration(std::int64_t /*done*/) {}
  virtual void on_evaluation_step(std::int64_t /*done*/, std::int64_t /*all*/) {}
  virtual void on_metrics(const Metrics&) {}
  virtual void on_evaluation(const Evaluation&) {}
  virtual void on_checkpoint(const std::filesystem::path&) {}
  /// Called after each micro step and each batch of an evaluation; true ends the training with a checkpoint.
  virtual bool stop() { return false; }
};

/// Mean loss over batches of a split, weighted by their targets, and scores.
struct SplitEvaluation {
  double loss = 0;
  std::vector<Score> scores;
};

/// The mean of losses that add up to `sum`. Throws FieldError if there is no target.
double mean_loss(double sum, double targets);

/// `on_step` gets the number of finished batches. `ranks` share the batches if the objective's totals allow
/// it; all add the losses in the order of the batches, as one process does.
SplitEvaluation evaluate_split(Objective& objective, Split split, std::int64_t batches,
                               const UpdaterOptions& precision,
                               const std::function<void(std::int64_t)>& on_step, Ranks* ranks = nullptr);

/// Trains an objective: schedule, gradient accumulation, clipping, mixed precision, evaluation, checkpoints.
/// A resumed run continues bit for bit.
class Trainer {
 public:
  /// Writes the model and tokenizer of a checkpoint into the directory of the optimizer's state.
  using SaveModel = std::function<void(const std::filesystem::path&)>;

  /// `objective` must outlive the trainer. train() creates the run's directory if it is missing. Throws
  /// FieldError for an option out of its range (training_fields.h), UnfitField as require_rounds() does.
  Trainer(Objective& objective, RunDirectory run, SaveModel save_model, const TrainerOptions& options);

  /// Continues from `run`'s checkpoint of this iteration: optimizer, generators, best loss. The module must
  /// already have the checkpoint's weights. Throws Error naming a file that does not match.
  void resume(std::int64_t iteration);

  struct Result {
    bool finished = false;  // false: stopped by the observer
    bool early = false;     // finished after options.patience evaluations without a better loss
    std::int64_t iterations = 0;
    double best_val_loss = 0, final_val_loss = 0;
    std::int64_t tokens = 0;  // of all ranks, as far as this call trained; none if it was stopped
    double seconds = 0;       // without evaluations and checkpoints
  };

  /// Throws Error if loss or gradients are not finite, or a checkpoint cannot be written; the last one stays.
  Result train(TrainingObserver& observer);

 private:
  class Clock;
  class Record;
  struct Stopped {};  // thrown out of an evaluation when the observer stops the training

  bool writes() const { return options_.ranks == nullptr || options_.ranks->rank() == 0; }
  void seed_rank(std::int64_t iteration) const;
  bool stopped(TrainingObserver& observer) const;
  std::int64_t all_tokens() const { return state_.tokens < 0 ? -1 : state_.tokens + tokens_; }
  void evaluate(std::int64_t iteration, TrainingObserver& observer);
  void evaluate_weights(std::int64_t iteration, TrainingObserver& observer);
  void checkpoint(std::int64_t iteration, TrainingObserver& observer);
  Metrics metrics(std::int64_t iteration, std::optional<double> loss, Clock& clock) const;
  std::optional<double> last_loss() const;
  Result stop_at(std::int64_t iteration, TrainingObserver& observer);
  Result finish(std::int64_t iteration, Record* record, Clock& clock, TrainingObserver& observer);

  Objective& objective_;
  RunDirectory run_;
  SaveModel save_model_;
  TrainerOptions options_;
  Updater updater_;
  // As the run began or was resumed. Only what it says of evaluations is kept up to date; that of iteration 0
  // is not counted, since untrained weights are no baseline.
  TrainerState state_{.best_val_loss = std::numeric_limits<double>::infinity(), .tokens = 0};
  std::int64_t tokens_ = 0;  // trained on by this process: rank 0's times the ranks
  bool is_split_ = false;    // resumed inside of an update, whose figures begin there
  Evaluation last_evaluation_;
};

}  // namespace zoo
