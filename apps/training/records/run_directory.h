#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

namespace zoo {

/// Where a run keeps what it makes:
///   run_config.json  metrics.jsonl  loss.png  best/  final/  checkpoints/step-00001000/ …
/// A checkpoint appears whole or not at all; a kill at any instant leaves the one before it.
class RunDirectory {
 public:
  /// `keep` step checkpoints stay, the newest; 0 keeps all.
  RunDirectory(std::filesystem::path path, std::int64_t keep);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path metrics_path() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path config_path() const { return path_ / "run_config.json"; }
  std::filesystem::path step_path(std::int64_t iteration) const;

  /// Iterations that have a checkpoint, ascending.
  std::vector<std::int64_t> steps() const;

  /// True if a run has left checkpoints or a final model here.
  bool holds_run() const;

  /// Removes what a killed run has left half-written.
  void clean() const;

  using Fill = std::function<void(const std::filesystem::path&)>;
  /// `fill` writes the files of a checkpoint into the directory that it is given. Throws Error on a full
  /// disk; what was there before is unharmed.
  void write_step(std::int64_t iteration, const Fill& fill);
  void write_best(const Fill& fill) { write(path_ / "best", fill); }
  void write_final(const Fill& fill) { write(path_ / "final", fill); }

 private:
  static void write(const std::filesystem::path& target, const Fill& fill);

  std::filesystem::path path_;
  std::int64_t keep_;
};

}  // namespace zoo
