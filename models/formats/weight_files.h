#pragma once

/// @file
/// Use:
///
///     const zoo::WeightFiles files("runs/kjv/final");  // a directory: one file or shards
///     for (const std::string& name : files.names())
///       std::cout << name << " " << files.tensor(name).sizes() << "\n";

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/formats/tensor_file.h"

namespace zoo {

/// Tensors of a checkpoint: model.safetensors of a directory, the shards that model.safetensors.index.json
/// lists, or another file of tensors.
class WeightFiles {
 public:
  /// Throws Error naming the directory and what is missing. Refuses pytorch_model.bin: a pickle can run code.
  explicit WeightFiles(const std::filesystem::path& directory);
  explicit WeightFiles(std::unique_ptr<const TensorFile> file);
  /// The tensors of `changed`, and those of `base` that it does not have.
  WeightFiles(std::shared_ptr<const WeightFiles> base, std::unique_ptr<const TensorFile> changed);

  /// True if the directory holds readable tensors.
  static bool exist_in(const std::filesystem::path& directory);

  const std::vector<std::string>& names() const { return names_; }
  bool contains(const std::string& name) const { return where_.count(name) != 0; }
  const TensorFile& file_of(const std::string& name) const { return *where_.at(name); }
  const TensorEntry& entry(const std::string& name) const { return file_of(name).entry(name); }
  at::Tensor tensor(const std::string& name) const { return file_of(name).tensor(name); }
  /// True if both tensors have the same type, shape and numbers. Compares parts of them, whose pages it gives
  /// back, so that memory holds neither as a whole, and remembers its answer.
  bool equal(const std::string& a, const std::string& b) const;
  at::Tensor rows(const std::string& name, std::int64_t begin, std::int64_t end) const {
    return file_of(name).rows(name, begin, end);
  }
  void give_back(const std::string& name, std::int64_t begin, std::int64_t end) const {
    file_of(name).give_back(name, begin, end);
  }
  /// The same of a whole tensor.
  void give_back(const std::string& name) const {
    const std::vector<std::int64_t>& shape = entry(name).shape;
    give_back(name, 0, shape.empty() ? 1 : shape.front());
  }

  /// TensorFile::verify() of each file that has checksums.
  void verify() const {
    if (base_) base_->verify();
    for (const auto& file : files_) file->verify();
  }

  /// The type of all tensors of floating-point numbers, or float32 if they differ; of `base`, if there is
  /// one. Throws Error for float64.
  at::ScalarType common_type() const;

  /// Total size of the files.
  std::int64_t bytes() const { return bytes_; }

 private:
  void add(std::unique_ptr<const TensorFile> file);

  std::shared_ptr<const WeightFiles> base_;
  std::vector<std::unique_ptr<const TensorFile>> files_;
  std::vector<std::string> names_;
  std::map<std::string, const TensorFile*> where_;
  std::int64_t bytes_ = 0;
  mutable std::map<std::pair<std::string, std::string>, bool> equal_;
};

}  // namespace zoo
