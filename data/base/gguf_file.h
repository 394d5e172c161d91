#pragma once

/// @file
/// Use:
///
///     const zoo::GgufFile file("model.gguf");
///     std::cout << file.text("general.architecture") << "\n";
///     for (const zoo::GgufFile::Tensor& tensor : file.tensors()) std::cout << tensor.name << "\n";

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "data/base/mapped_file.h"

namespace zoo {

/// A type of numbers in a GGUF file: `bytes` hold `block` numbers of a row. `id` is ggml's.
struct GgufType {
  std::uint32_t id;
  const char* name;
  std::size_t block, bytes;
};

/// A type that the zoo reads. Throws std::out_of_range for another name.
const GgufType& gguf_type(std::string_view name);

/// A GGUF file (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md), version 2 or 3: metadata, a table
/// of tensors, their bytes. Opening maps the file and checks all of it against its size.
class GgufFile {
 public:
  struct Tensor {
    std::string name;
    const GgufType* type = nullptr;
    std::vector<std::int64_t> shape = {};  // rows first, as in PyTorch
    std::size_t begin = 0, end = 0;        // in the file
  };

  /// Throws Error naming the file, the key or tensor and what is wrong with it.
  explicit GgufFile(const std::filesystem::path& path);

  /// True if the path is a file with the magic bytes of GGUF.
  static bool is_one(const std::filesystem::path& path);

  /// The metadata: numbers, booleans, texts, and lists of these.
  const nlohmann::json& metadata() const { return *metadata_; }
  /// A text of the metadata; "" if the key is absent. Throws Error if it is not a text.
  std::string text(const char* key) const;
  const std::vector<Tensor>& tensors() const { return tensors_; }
  std::byte* data(const Tensor& tensor) const { return file_->data() + tensor.begin; }
  const std::shared_ptr<MappedFile>& file() const { return file_; }
  const std::filesystem::path& path() const { return file_->path(); }

 private:
  std::shared_ptr<MappedFile> file_;
  std::shared_ptr<nlohmann::json> metadata_;
  std::vector<Tensor> tensors_;
};

}  // namespace zoo
