#include "apps/training/records/run_directory.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "data/base/json.h"
#include "data/base/lines.h"
#include "models/formats/config_reader.h"
#include "models/formats/safetensors.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStepPrefix = "step-";

constexpr std::array kParts{"checkpoints", "best",        "final",       "metrics.jsonl",
                            "loss.png",    "tensorboard", kReferenceFile};

constexpr std::int64_t kFormatVersion = 1;

std::vector<std::pair<const char*, at::Generator>> default_generators(c10::Device device) {
  std::vector<std::pair<const char*, at::Generator>> generators{
      {"cpu", at::detail::getDefaultCPUGenerator()}};
  if (device.is_cuda()) generators.emplace_back("cuda", at::globalContext().defaultGenerator(device));
  return generators;
}

}  // namespace

fs::path RunDirectory::step_path(std::int64_t iteration) const {
  std::string digits = std::to_string(iteration);
  if (digits.size() < 8) digits.insert(0, 8 - digits.size(), '0');
  return path_ / "checkpoints" / (std::string(kStepPrefix) + digits);
}

std::vector<std::int64_t> RunDirectory::steps() const {
  std::vector<std::int64_t> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(path_ / "checkpoints", none)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory() || name.compare(0, kStepPrefix.size(), kStepPrefix) != 0) continue;
    const std::string_view digits = std::string_view(name).substr(kStepPrefix.size());
    if (const auto iteration = number_in<std::int64_t>(digits)) found.push_back(*iteration);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string RunDirectory::foreign_part() const {
  if (fs::exists(config_path())) return "";
  const auto found = std::ranges::find_if(kParts, [&](const char* part) { return fs::exists(path_ / part); });
  return found == kParts.end() ? "" : *found;
}

void RunDirectory::discard() const {
  fs::remove(config_path());  // first: without it nobody goes on with what a kill leaves
  for (const char* part : kParts) fs::remove_all(path_ / part);
}

bool RunDirectory::discards(const fs::path& path) const {
  const fs::path inside = fs::weakly_canonical(path).lexically_relative(fs::weakly_canonical(path_));
  return !inside.empty() && std::ranges::find(kParts, *inside.begin()) != kParts.end();
}

void RunDirectory::clean() const {
  std::error_code ignored;
  for (const fs::path& folder : {path_, path_ / "checkpoints"}) {
    std::vector<fs::path> leftovers;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      const bool half_written = name.find(".tmp-") != std::string::npos || name.compare(0, 5, ".old-") == 0;
      if (name[0] == '.' && half_written) leftovers.push_back(entry.path());
    }
    for (const fs::path& path : leftovers) {
      const std::string name = path.filename().string();
      if (name.ends_with(kReplaced))
        put_back_replaced(folder / name.substr(1, name.size() - 1 - kReplaced.size()));
      else fs::remove_all(path, ignored);
    }
  }
}

void RunDirectory::write_step(std::int64_t iteration, const Fill& fill) {
  write(step_path(iteration), fill);
  if (keep_ == 0) return;
  // Deletes old checkpoints only after the new one is safe, each atomically by a rename.
  std::vector<std::int64_t> all = steps();
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep_) < all.size(); ++i) {
    const fs::path old = step_path(all[i]), doomed = old.parent_path() / (".old-" + old.filename().string());
    std::error_code ignored;
    fs::rename(old, doomed, ignored);
    fs::remove_all(doomed, ignored);
  }
}

void RunDirectory::write(const fs::path& target, const Fill& fill) {
  make_directories(target.parent_path());
  AtomicDirectory directory(target);
  fill(directory.path());
  directory.commit();
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
          .tokens = reader.get_int("tokens", -1),
          .data_sha256 = reader.get_string("data_sha256", "")};
}

void write_trainer_state(const std::filesystem::path& directory, const TrainerState& state) {
  const nlohmann::json json{{"format_version", kFormatVersion},
                            {"iteration", state.iteration},
                            {"micro_steps", state.micro_steps},
                            {"micro_batches", state.micro_batches},
                            {"best_val_loss", state.best_val_loss},  // null if it is infinite
                            {"stale_evaluations", state.stale_evaluations},
                            {"counted_evaluation", state.counted_evaluation},
                            {"tokens", state.tokens},
                            {"data_sha256", state.data_sha256}};
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
    if (!file.contains(name)) continue;  // of another device: it is as the seed has made it
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
