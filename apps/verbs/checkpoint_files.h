#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "models/checkpoint/checkpoint.h"

namespace zoo {

/// Throws Error unless `target` is new, empty, or a checkpoint and nothing else: export replaces it.
void check_export_target(const std::filesystem::path& source, const std::filesystem::path& target);

/// Throws Error if `output` is a file of the model, which would be lost.
void check_output_file(const std::filesystem::path& model, const std::filesystem::path& output);

/// Names of what lies beside an adapter's configuration and weights, sorted, without hidden files.
std::vector<std::string> files_beside_adapter(const std::filesystem::path& adapter);

/// Formats of one file: TorchScript has the weights alone, a page also the tokenizer, GGUF also templates.
enum class SingleFile { kTorchScript, kHtml, kGguf };

/// What a model's directory carries beside its weights: all keys of config.json, generation_config.json, the
/// tokenizer's files, chat templates, the files and folders of Sentence-Transformers, model card and license;
/// of a GGUF file tokenizer and chat templates. In memory, since what a training starts from may go.
class ModelFiles {
 public:
  explicit ModelFiles(const CheckpointConfig& source);

  /// Writes them into a directory of save_model(), whose config.json keeps what differs from the source's
  /// configuration (labels, architecture, dtype), or into one without a config.json.
  void write(const std::filesystem::path& directory) const;

  /// What one file of the format does not hold: names of files and folders, and of the keys of
  /// generation_config.json and tokenizer_config.json that change results.
  std::vector<std::string> left_out(SingleFile format) const;

  /// Names of the other files and folders of source and adapter, which nobody writes: weights and hidden
  /// files are none.
  const std::vector<std::string>& unknown() const { return unknown_; }

 private:
  CheckpointConfig source_;
  std::map<std::string, std::string> files_;  // bytes by path
  std::vector<std::string> unknown_;
};

}  // namespace zoo
