#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "apps/command/progress.h"
#include "apps/training/trainer.h"
#include "apps/verbs/train/train_options.h"
#include "models/model.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

/// Texts that a model generates while it learns.
struct TextSamples {
  std::int64_t interval = 0;  // iterations between two texts; 0: none
  std::function<std::string()> text;
};

/// Shows training progress: a bar on a terminal, nanoGPT's lines in a pipe; draws loss.png at each
/// evaluation. Ctrl-C, SIGTERM and SIGHUP end the training (see StopSignal).
class TrainingReporter : public TrainingObserver {
 public:
  TrainingReporter(std::int64_t max_iters, std::filesystem::path metrics, std::filesystem::path plot,
                   TextSamples samples);

  void on_iteration(std::int64_t done) override;
  void on_evaluation_step(std::int64_t done, std::int64_t all) override;
  void on_metrics(const Metrics& metrics) override;
  void on_evaluation(const Evaluation& evaluation) override;
  void on_checkpoint(const std::filesystem::path& path) override;
  bool stop() override;

  /// Clears the bar.
  void clear() { progress_.clear(); }

  /// Draws loss.png; if it cannot, prints the reason once.
  void draw();

 private:
  Progress progress_;
  std::filesystem::path metrics_, plot_;
  TextSamples samples_;
  std::string status_;
  std::int64_t max_iters_;
  double ms_per_iter_ = 0;
  bool can_draw_ = true;
};

/// The texts of --sample_interval and --sample_prompt; both must outlive them. They draw from generators of
/// their own: a run with samples learns what it learns without. Throws UsageError for a task without a text
/// to continue.
TextSamples text_samples(const TrainFlags& flags, Model& model, std::shared_ptr<const Tokenizer> tokenizer);

}  // namespace zoo
