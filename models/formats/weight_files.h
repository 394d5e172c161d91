#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/formats/safetensors.h"

namespace zoo {

/// Tensors of a checkpoint directory: model.safetensors, or the shards that model.safetensors.index.json
/// lists.
class WeightFiles {
 public:
  /// Throws Error naming the directory and what is missing. Refuses pytorch_model.bin: a pickle can run code.
  explicit WeightFiles(const std::filesystem::path& directory);

  /// True if the directory holds readable tensors.
  static bool exist_in(const std::filesystem::path& directory);

  const std::vector<std::string>& names() const { return names_; }
  bool contains(const std::string& name) const { return where_.count(name) != 0; }
  const SafetensorsFile::Entry& entry(const std::string& name) const { return where_.at(name)->entry(name); }
  at::Tensor tensor(const std::string& name) const { return where_.at(name)->tensor(name); }

  /// Total size of the files.
  std::int64_t bytes() const { return bytes_; }

 private:
  void add(const std::filesystem::path& path);

  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::vector<std::string> names_;
  std::map<std::string, const SafetensorsFile*> where_;
  std::int64_t bytes_ = 0;
};

}  // namespace zoo
