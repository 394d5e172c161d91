#pragma once

#include <filesystem>
#include <optional>

#include <c10/core/Device.h>
#include <nlohmann/json_fwd.hpp>

#include "models/checkpoint/load_report.h"
#include "models/checkpoint/weights.h"
#include "models/family.h"

namespace zoo {

/// What a directory's config.json describes; no weight is read.
struct CheckpointConfig {
  const Family* family = nullptr;
  TransformerConfig config;
  Head head = Head::kBase;
};

/// Reads config.json. The head is that of its "architectures" unless one is named.
/// Throws Error naming the file, and the key that is missing, wrong or unknown.
CheckpointConfig read_checkpoint_config(const std::filesystem::path& directory,
                                        std::optional<Head> head = std::nullopt);

/// Hugging Face's class for the head. Throws Error if the family does not have it.
std::string architecture_of(const Family& family, Head head);

/// The family's table as Hugging Face's class for the head names its weights: a bare model's without a
/// prefix.
WeightTable weight_table_of(const Family& family, const TransformerConfig& config, Head head);

struct LoadOptions {
  at::ScalarType dtype = at::kFloat;
  c10::Device device = c10::kCPU;
  bool trainable = false;  // see WeightOptions
  std::optional<Head> head;
  /// Of a head that classifies: other labels than config.json says; empty: those.
  std::vector<std::string> label_names;
  /// What the directory lacks of the head is drawn anew from this seed, as fine-tuning needs it. None: Error.
  std::optional<std::uint64_t> fresh_head_seed;
};

struct LoadedModel {
  std::shared_ptr<Model> model;
  const Family* family = nullptr;
  Head head = Head::kBase;
  LoadReport report;
};

/// A model from a directory in Hugging Face's layout, in evaluation mode.
/// Throws Error naming all missing, unexpected and mis-shaped tensors at once.
LoadedModel load_model(const std::filesystem::path& directory, const LoadOptions& options = {});

/// How the directory's tensors fit the model that its config.json describes.
LoadReport inspect_weights(const std::filesystem::path& directory, const CheckpointConfig& checkpoint);

struct SaveOptions {
  std::optional<std::int64_t> eos_token_id;  // written to config.json and generation_config.json
  at::ScalarType dtype = at::kFloat;
};

/// Writes config.json, generation_config.json and model.safetensors into an existing directory.
void save_model(const Model& model, const Family& family, Head head, const std::filesystem::path& directory,
                const SaveOptions& options = {});

}  // namespace zoo
