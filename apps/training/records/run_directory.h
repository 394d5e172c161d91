#pragma once

/// @file
/// Use:
///
///     zoo::RunDirectory run("runs/mine", /*keep=*/3);
///     run.write_step(1000,
///                    [](const std::filesystem::path& to) { zoo::write_file(to / "notes.txt", "step"); });
///     std::cout << run.step_path(run.steps().back()) << "\n";

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

namespace zoo {

/// Output directory of a run:
///   run_config.json  metrics.jsonl  loss.png  best/  final/  checkpoints/step-00001000/ …
/// Checkpoints appear atomically; a kill at any time leaves the previous one intact.
class RunDirectory {
 public:
  /// Keeps the newest `keep` step checkpoints; 0 keeps all.
  RunDirectory(std::filesystem::path path, std::int64_t keep);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path metrics_path() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path config_path() const { return path_ / "run_config.json"; }
  std::filesystem::path step_path(std::int64_t iteration) const;

  /// Iterations with a checkpoint, ascending.
  std::vector<std::int64_t> steps() const;

  /// True if there are checkpoints or a final model of an earlier run.
  bool holds_run() const;

  /// Removes half-written files of a killed run.
  void clean() const;

  using Fill = std::function<void(const std::filesystem::path&)>;
  /// `fill` writes the files of a checkpoint into the given directory. Throws Error on a full disk; existing
  /// checkpoints stay intact.
  void write_step(std::int64_t iteration, const Fill& fill);
  void write_best(const Fill& fill) { write(path_ / "best", fill); }
  void write_final(const Fill& fill) { write(path_ / "final", fill); }

 private:
  static void write(const std::filesystem::path& target, const Fill& fill);

  std::filesystem::path path_;
  std::int64_t keep_;
};

}  // namespace zoo
