#pragma once

/// @file
/// Use:
///
///     const zoo::LoadedModel loaded = zoo::load_model("runs/kjv/final");  // models/model.h to call it
///     std::cout << loaded.family->model_type << ": " << loaded.model->parameter_count() << " parameters\n";
///     zoo::save_model(*loaded.model, *loaded.family, loaded.head, "copy");  // an existing directory

#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include <c10/core/Device.h>
#include <nlohmann/json_fwd.hpp>

#include "data/base/model_path.h"
#include "models/checkpoint/load_report.h"
#include "models/checkpoint/packed_parts.h"
#include "models/checkpoint/weights.h"
#include "models/family.h"

namespace zoo {

class PeftAdapter;

/// Adapters of LoRA beside the weights, in a checkpoint that a training resumes from.
inline constexpr const char* kAdaptersFile = "lora.safetensors";

/// A checkpoint: a GGUF file, or a directory, whose config.json is read once and whose weight files are
/// opened at the first use.
struct CheckpointConfig {
  ModelPath directory;                         // or the GGUF file
  std::filesystem::path config_file;           // config.json or the GGUF file
  std::shared_ptr<const nlohmann::json> json;  // config.json, or its equivalent for a GGUF file
  const Family* family = nullptr;
  TransformerConfig config;
  Head head = Head::kBase;
  Head own_head = Head::kBase;  // of its "architectures", whatever head the caller named

  /// Throws Error as WeightFiles does, and if the directory holds packed weights.
  const WeightFiles& files() const { return *shared_files(); }
  const std::shared_ptr<const WeightFiles>& shared_files() const;
  /// The directory's packed weights; null if it has none. Throws Error as PackedParts does.
  std::shared_ptr<PackedParts> packed_parts() const;

  /// From now on files() are those of the other checkpoint, whose weights fit this configuration.
  void use_weights_of(const CheckpointConfig& other) { files_ = other.shared_files(); }

  /// Merges an adapter into files(), and makes labels of a classification head that it brings.
  void merge(const PeftAdapter& adapter, bool with_terms);

 private:
  friend CheckpointConfig open_checkpoint(const ModelPath& path);

  mutable std::shared_ptr<const WeightFiles> files_;
};

/// Reads config.json or a GGUF file. The head comes from the adapter, or from "architectures", unless the
/// caller names one.
/// Throws Error naming the file, and the key that is missing, wrong or of another architecture; warns about
/// ignored keys (TORCH_WARN). A directory with adapters (kAdaptersFile) is refused unless the caller applies
/// them to the model, whose weights are those before; so are they then below the terms of directory.adapter.
/// Throws Error as PeftAdapter does.
CheckpointConfig read_checkpoint_config(const ModelPath& directory, std::optional<Head> head = std::nullopt,
                                        bool applies_adapters = false);

/// Hugging Face's class for the head. Throws Error if the family lacks the head.
std::string architecture_of(const Family& family, Head head);

/// The family's weight names as in Hugging Face's class for the head: without a prefix for a bare model.
WeightTable weight_table_of(const Family& family, const TransformerConfig& config, Head head);

struct LoadOptions {
  at::ScalarType dtype = at::kFloat;
  c10::Device device = c10::kCPU;
  bool trainable = false;  // see WeightOptions
  std::optional<Head> head;
  /// Matrices stay in the files until they are packed or StoredWeights::load_all() reads them. Not for
  /// training, a fresh head or another device than the CPU.
  bool stored = false;
  /// Labels of a classification head, instead of those in config.json; empty: those.
  std::vector<std::string> label_names;
  /// Seed for newly initialised head weights that the directory lacks (fine-tuning). None: Error.
  std::optional<std::uint64_t> fresh_head_seed;
};

struct LoadedModel {
  std::shared_ptr<Model> model;
  const Family* family = nullptr;
  Head head = Head::kBase;
  LoadReport report;
  /// The matrices that the modules lack, and packed weights; null unless LoadOptions::stored.
  std::shared_ptr<const StoredWeights> stored;
};

/// Loads a model from a directory in Hugging Face's layout or from a GGUF file, in evaluation mode.
/// Throws Error naming all missing, unexpected and mis-shaped tensors at once. Models throw c10::Error, too:
/// plain_message() has the text of both (models/model.h).
LoadedModel load_model(const ModelPath& directory, const LoadOptions& options = {});

/// The same for a checkpoint whose configuration has been read.
LoadedModel load_model(CheckpointConfig checkpoint, const LoadOptions& options = {});

/// Compares the directory's tensors with the model that its config.json describes.
LoadReport inspect_weights(const CheckpointConfig& checkpoint);

struct SaveOptions {
  std::optional<std::int64_t> eos_token_id;  // written to config.json and generation_config.json
  at::ScalarType dtype = at::kFloat;
  /// Weights to write instead of the model's, by the model's parameter names.
  std::map<std::string, at::Tensor> replaced = {};
};

/// Writes config.json and generation_config.json into an existing directory.
void save_config(const Model& model, const Family& family, Head head, const std::filesystem::path& directory,
                 const SaveOptions& options = {});

/// The same, and model.safetensors.
void save_model(const Model& model, const Family& family, Head head, const std::filesystem::path& directory,
                const SaveOptions& options = {});

}  // namespace zoo
