#pragma once

/// @file
/// Use:
///
///     zoo::MetricsLog log("runs/mine/metrics.jsonl", /*first_iteration=*/0);
///     log.write({.iter = 10, .train_loss = 2.5, .lr = 1e-3});

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/training/layer_norms.h"
#include "data/base/append_file.h"

namespace zoo {

/// A metric of an evaluation: "accuracy", 0.93.
struct Score {
  std::string name;
  double value = 0;
};

struct Metrics {
  std::int64_t iter = 0;
  /// This batch's, in nats; after the last update, the last batch's; none (null): it had nothing to predict.
  std::optional<double> train_loss = {};
  double lr = 0;
  double ms_per_iter = 0;  // mean since the last logged iteration, without evaluation and checkpoints
  double tokens_per_second = 0;
  std::int64_t tokens = -1;             // of the run so far; negative: unknown, and not written
  std::optional<double> grad_norm;      // before clipping
  std::optional<double> loss_scale;     // for float16
  std::optional<std::int64_t> skipped;  // updates left out so far as spikes; written as "skipped_updates"
  std::vector<LayerNorms> layers;       // of this update; written as "layers": {NAME: {…}}
  std::vector<double> attention_logit_maxima;  // before this update, of its first micro step
  std::vector<Score> train_scores;  // since the last logged iteration or evaluation; as "train_NAME"
  std::optional<double> val_loss;   // if evaluated, before the iteration's update
  std::vector<Score> val_scores;    // likewise; written as "val_NAME"
  std::vector<double> wait_ms;      // Ranks::take_waits() since the last logged iteration; empty: one process
};

/// True if a metrics.jsonl has a line of this iteration. Throws Error naming the file if it cannot be read.
bool has_line(const std::filesystem::path& path, std::int64_t iteration);

/// metrics.jsonl: one JSON object per line and logged iteration, flushed to disk at once.
class MetricsLog {
 public:
  /// Keeps the lines of iterations before `first_iteration`: a resumed run repeats the later ones. Drops a
  /// line that a kill cut short. Throws Error naming the file.
  MetricsLog(const std::filesystem::path& path, std::int64_t first_iteration);

  /// Throws Error naming the file when the disk is full.
  void write(const Metrics& metrics);

 private:
  AppendFile file_;
};

/// Event file for TensorBoard: each record of the TFRecord file is a protobuf message "Event". A resumed run
/// writes a new file that tells TensorBoard to drop the later steps of older files.
class EventFile {
 public:
  /// Creates `directory` and events.out.tfevents.TIME.HOST.PROCESS in it. Throws Error naming it.
  EventFile(const std::filesystem::path& directory, std::int64_t first_iteration);

  /// Writes train/loss, train/lr, …; val/loss, … after an evaluation. Throws Error when the disk is full.
  void write(const Metrics& metrics);

 private:
  AppendFile file_;
};

}  // namespace zoo
