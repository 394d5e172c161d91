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
#include <string>
#include <vector>

#include <c10/core/Device.h>

namespace zoo {

/// In a run of the task preference: log-probabilities of its answers by the weights that it began with.
inline constexpr const char* kReferenceFile = "reference.safetensors";

/// Output directory of a run:
///   run_config.json  metrics.jsonl  loss.png  best/  final/  checkpoints/step-00001000/ …
/// Checkpoints appear atomically; a kill at any time leaves the previous one intact.
class RunDirectory {
 public:
  /// Keeps the newest `keep` step checkpoints; 0 keeps all.
  RunDirectory(std::filesystem::path path, std::int64_t keep) : path_(std::move(path)), keep_(keep) {}

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path metrics_path() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path config_path() const { return path_ / "run_config.json"; }
  std::filesystem::path step_path(std::int64_t iteration) const;

  /// Iterations with a checkpoint, ascending.
  std::vector<std::int64_t> steps() const;

  /// True if there are models of an earlier run.
  bool holds_run() const { return !steps().empty() || exists(path_ / "final") || exists(path_ / "best"); }

  /// What has the name of a part of a run though no run has begun here; empty: nothing.
  std::string foreign_part() const;

  /// Deletes the parts of an earlier run.
  void discard() const;
  /// Before a run begins again without a checkpoint: deletes what it would add to. Its models stay until the
  /// new ones take their places.
  void discard_events() const { std::filesystem::remove_all(path_ / "tensorboard"); }
  /// True if that would remove the file or directory.
  bool discards(const std::filesystem::path& path) const;

  /// Removes half-written files of a killed run, and puts back what it was replacing.
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

inline constexpr const char* kTrainerStateFile = "trainer_state.json";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";
/// Of a rank with an optimizer of its own: kOptimizerFile of rank 0, then "optimizer-1.safetensors", …
inline std::string optimizer_file(std::int64_t rank) {
  return rank == 0 ? kOptimizerFile : "optimizer-" + std::to_string(rank) + ".safetensors";
}
inline constexpr const char* kAverageFile = "average.safetensors";
inline constexpr const char* kGradientsFile = "gradients.safetensors";
inline constexpr const char* kGeneratorsFile = "rng.safetensors";

/// State of a step checkpoint besides tensors.
struct TrainerState {
  std::int64_t iteration = 0;           // the next iteration
  std::int64_t micro_steps = 0;         // finished micro steps of that iteration
  std::int64_t micro_batches = 0;       // of an update, over all ranks; 0: unknown
  double best_val_loss = 0;             // infinity before the first evaluation
  std::int64_t stale_evaluations = 0;   // in a row without a lower loss
  std::int64_t counted_evaluation = 0;  // last iteration included in that count
  std::int64_t tokens = -1;             // trained on so far; negative: unknown
  std::string data_sha256 = {};         // of the dataset; empty: unknown
};

/// Throws Error naming file and key.
TrainerState read_trainer_state(const std::filesystem::path& directory);
void write_trainer_state(const std::filesystem::path& directory, const TrainerState& state);

/// Seeds the CPU's and a CUDA device's default generators, which dropout uses.
void seed_generators(std::uint64_t seed, c10::Device device);
void save_generators(const std::filesystem::path& directory, c10::Device device);
/// Throws Error naming the file if it holds no generator state.
void load_generators(const std::filesystem::path& directory, c10::Device device);

}  // namespace zoo
