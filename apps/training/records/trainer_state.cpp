#include "apps/training/records/trainer_state.h"

#include <cmath>
#include <limits>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/json_file.h"
#include "models/formats/config_reader.h"
#include "models/formats/safetensors.h"

namespace zoo {
namespace {

constexpr std::int64_t kFormatVersion = 1;

struct NamedGenerator {
  const char* name;
  at::Generator generator;
};

std::vector<NamedGenerator> default_generators(c10::Device device) {
  std::vector<NamedGenerator> generators{{"cpu", at::detail::getDefaultCPUGenerator()}};
  if (device.is_cuda()) generators.push_back({"cuda", at::globalContext().defaultGenerator(device)});
  return generators;
}

}  // namespace

std::string optimizer_file(std::int64_t rank) {
  return rank == 0 ? kOptimizerFile : "optimizer-" + std::to_string(rank) + ".safetensors";
}

TrainerState read_trainer_state(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kTrainerStateFile;
  const nlohmann::json json = read_json(path);
  const ConfigReader reader(json, path.string());
  // Checkpoints of 0.1.0 have no version; their keys are those of version 1.
  if (reader.get_int("format_version", kFormatVersion) != kFormatVersion)
    reader.refuse("format_version", "expected " + std::to_string(kFormatVersion));
  // JSON has no infinity; null represents it.
  return {.iteration = reader.require_int("iteration"),
          .micro_steps = reader.get_int("micro_steps", 0),
          .micro_batches = reader.get_int("micro_batches", 0),
          .best_val_loss = reader.get_double("best_val_loss", std::numeric_limits<double>::infinity()),
          .stale_evaluations = reader.get_int("stale_evaluations", 0),
          .counted_evaluation = reader.get_int("counted_evaluation", 0),
          .data_sha256 = reader.get_string("data_sha256", "")};
}

void write_trainer_state(const std::filesystem::path& directory, const TrainerState& state) {
  nlohmann::json json{{"format_version", kFormatVersion},
                      {"iteration", state.iteration},
                      {"micro_steps", state.micro_steps},
                      {"micro_batches", state.micro_batches},
                      {"best_val_loss", nullptr},
                      {"stale_evaluations", state.stale_evaluations},
                      {"counted_evaluation", state.counted_evaluation},
                      {"data_sha256", state.data_sha256}};
  if (std::isfinite(state.best_val_loss)) json["best_val_loss"] = state.best_val_loss;
  write_json(directory / kTrainerStateFile, json);
}

void seed_generators(std::uint64_t seed, c10::Device device) {
  for (auto& [name, generator] : default_generators(device)) {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_current_seed(seed);
  }
}

void save_generators(const std::filesystem::path& directory, c10::Device device) {
  NamedTensors states;
  for (auto& [name, generator] : default_generators(device)) {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    states.emplace_back(name, generator.get_state());
  }
  write_safetensors(directory / kGeneratorsFile, states);
}

void load_generators(const std::filesystem::path& directory, c10::Device device) {
  const SafetensorsFile file(directory / kGeneratorsFile);
  file.verify();
  for (auto& [name, generator] : default_generators(device)) {
    const at::Tensor state = file.tensor(name);
    try {
      const std::lock_guard<std::mutex> lock(generator.mutex());
      generator.set_state(state.clone());
    } catch (const c10::Error& error) {
      throw Error(file.path(), ": '", name, "' is not the state of a generator");
    }
  }
}

}  // namespace zoo
