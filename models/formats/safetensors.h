#pragma once

/// @file
/// Use:
///
///     zoo::write_safetensors("pair.safetensors", {{"a", at::ones({2, 3})}, {"b", at::zeros({4})}});
///     const zoo::SafetensorsFile file("pair.safetensors");
///     for (const std::string& name : file.names())
///       std::cout << name << " " << file.tensor(name).sizes() << "\n";

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "data/base/mapped_file.h"
#include "models/formats/tensor_file.h"

namespace zoo {

/// A safetensors file (https://github.com/huggingface/safetensors): eight bytes with the length of a JSON
/// header, the header, then the tensors' bytes. Opening maps the file and checks every length, offset, type
/// and shape, so that reading a tensor cannot fail later.
///
/// write_safetensors() adds the key "crc32c" to __metadata__, which other programs pass over: eight
/// hexadecimal digits of the header's CRC-32C, with zeros in their own place, then eight of each tensor's in
/// the order of their bytes. Opening checks the header's, verify() the others; a file without the key has
/// nothing to check.
class SafetensorsFile : public TensorFile {
 public:
  /// Throws Error naming the file, the tensor and what is wrong with it.
  explicit SafetensorsFile(const std::filesystem::path& path);

  /// Returns a view of the mapped bytes, which stay mapped while it lives; copies only bytes that are not
  /// aligned. Writing to it changes this process's memory, never the file.
  at::Tensor tensor(const std::string& name) const override;
  at::Tensor rows(const std::string& name, std::int64_t begin, std::int64_t end) const override;
  void give_back(const std::string& name, std::int64_t begin, std::int64_t end) const override;

  bool verify() const override;

  /// Without the key of checksums.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::filesystem::path& path() const override { return file_->path(); }

 private:
  std::span<std::byte> bytes_of_rows(const TensorEntry& entry, std::int64_t begin, std::int64_t end) const;
  at::Tensor numbers_in(std::span<std::byte> bytes, const TensorEntry& entry,
                        const std::vector<std::int64_t>& shape) const;

  std::shared_ptr<MappedFile> file_;
  std::size_t data_start_ = 0;
  std::map<std::string, std::string> metadata_;
  std::string checksums_;  // of the header and the tensors; empty: none
};

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Writes the tensors in this order, atomically. Fetches tensors from other devices one at a time.
/// Throws Error for a full disk, a duplicate name, and a type that the format lacks.
void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

/// Name of a type in the format ("F32", "BF16", …), or nullptr if it has none.
const char* safetensors_name(at::ScalarType dtype);

}  // namespace zoo
