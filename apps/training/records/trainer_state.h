#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <c10/core/Device.h>

namespace zoo {

inline constexpr const char* kTrainerStateFile = "trainer_state.json";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";
/// Of a rank with an optimizer of its own: kOptimizerFile of rank 0, then "optimizer-1.safetensors", …
std::string optimizer_file(std::int64_t rank);
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
