#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace zoo {

/// A figure of an evaluation: "accuracy", 0.93.
struct Score {
  std::string name;
  double value = 0;
};

/// What is known of an iteration.
struct Metrics {
  std::int64_t iter = 0;
  double train_loss = 0;  // of this iteration's batch, in nats
  double lr = 0;
  double ms_per_iter = 0;  // mean since the last logged iteration, evaluation and checkpoints left out
  double tokens_per_second = 0;
  std::optional<double> grad_norm;   // before clipping
  std::optional<double> loss_scale;  // of float16
  std::optional<double> val_loss;    // where it was evaluated, before the iteration's update
  std::vector<Score> val_scores;     // the same; written as "val_NAME"
};

/// metrics.jsonl: one JSON object a line for each logged iteration, on disk as soon as it is written.
class MetricsLog {
 public:
  /// Keeps the lines of iterations before `first_iteration` (a resumed run repeats the later ones; a line
  /// that a kill has cut short goes too). Throws Error naming the file.
  MetricsLog(const std::filesystem::path& path, std::int64_t first_iteration);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  /// Throws Error naming the file when the disk is full.
  void write(const Metrics& metrics);

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace zoo
