#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "data/base/error.h"

namespace zoo {

struct TensorEntry {
  at::ScalarType dtype;
  std::vector<std::int64_t> shape;
  std::size_t begin = 0, end = 0;   // in a safetensors file, counted in its data part
  const char* quantized = nullptr;  // the file's own type, if it is none of PyTorch's
};

/// Rows of a quantized matrix, taken apart: element k of row i is scale q - minimum, with q from numbers
/// [rows, columns], scale and minimum from planes [rows, columns / kRun] at k / kRun.
struct BlockRows {
  static constexpr std::size_t kRun = 16;
  std::vector<std::uint8_t> numbers;
  std::vector<float> scales, minimums;
};

/// A file of named tensors, checked when it is opened, so that reading one cannot fail later.
class TensorFile {
 public:
  virtual ~TensorFile() = default;

  /// Tensor names in the order of their bytes in the file.
  const std::vector<std::string>& names() const { return names_; }
  bool contains(const std::string& name) const { return entries_.contains(name); }
  /// Throws Error naming the file if it has no such tensor.
  const TensorEntry& entry(const std::string& name) const {
    const auto found = entries_.find(name);
    if (found == entries_.end()) throw Error(path(), ": there is no tensor '", name, "'");
    return found->second;
  }
  virtual at::Tensor tensor(const std::string& name) const = 0;
  /// Rows [begin, end) of the first dimension of a matrix. May be called from several threads.
  virtual at::Tensor rows(const std::string& name, std::int64_t begin, std::int64_t end) const = 0;
  /// Columns [begin, end) of a matrix as rows: of its transpose.
  virtual at::Tensor columns(const std::string& name, std::int64_t begin, std::int64_t end) const {
    return tensor(name).t().slice(0, begin, end);
  }
  /// True if the rows of a matrix, or its columns as rows, are quantized blocks.
  virtual bool has_blocks(const std::string&, bool /*columns*/) const { return false; }
  /// Appends rows (or columns) [begin, end) that has_blocks(). May be called from several threads.
  virtual void append_blocks(const std::string& name, bool /*columns*/, std::int64_t /*begin*/,
                             std::int64_t /*end*/, BlockRows&) const {
    TORCH_CHECK(false, name, " has no blocks");
  }
  /// Compares all tensors with the checksums that the file has of them; false if it has none. Throws Error
  /// naming the file and the tensor whose bytes have changed.
  virtual bool verify() const { return false; }
  /// Releases the memory of these rows' pages, which the next access reads from the file again.
  virtual void give_back(const std::string& name, std::int64_t begin, std::int64_t end) const = 0;
  virtual const std::filesystem::path& path() const = 0;

 protected:
  void add(const std::string& name, TensorEntry entry) {
    names_.push_back(name);
    entries_.emplace(name, std::move(entry));
  }

 private:
  std::vector<std::string> names_;
  std::map<std::string, TensorEntry> entries_;
};

}  // namespace zoo
