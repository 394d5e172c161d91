#pragma once

/// @file
/// Use:
///
///     const zoo::LoadedModel loaded = zoo::load_model("runs/kjv/final", {.stored = true});
///     const auto decoder =
///         zoo::pack(*loaded.model, {.stored = loaded.stored});  // reads the files row by row
///     loaded.stored->load_all();                                // or: into the modules

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include "models/formats/weight_files.h"
#include "models/formats/weight_table.h"

namespace zoo {

class Model;
class PackedParts;

/// A line of a weight table with the names in the files.
struct StoredWeight {
  WeightName name;
  std::shared_ptr<const WeightFiles> files;
  at::ScalarType dtype = at::kFloat;

  /// The weight in our layout, of `dtype`: a view of the mapped file if that has the same layout and type.
  /// Frees the file's pages.
  at::Tensor read() const;
};

/// Rows of a matrix [rows, columns]: of a tensor, or of files, from which they are loaded on demand.
class WeightRows {
 public:
  explicit WeightRows(at::Tensor tensor) : shape_(tensor.sizes().vec()), tensor_(tensor.detach()) {}
  WeightRows(StoredWeight stored, at::IntArrayRef shape);

  std::int64_t size(std::size_t dimension) const { return shape_.at(dimension); }

  /// Rows [begin, end). May be called from several threads.
  at::Tensor rows(std::int64_t begin, std::int64_t end) const;
  at::Tensor all() const { return rows(0, size(0)); }

  /// The file's own types of these rows (GGUF: "Q4_K"); empty unless all are quantized blocks.
  std::set<std::string> block_types(std::int64_t begin, std::int64_t end) const;
  /// Their file and tensor, for messages.
  std::string source() const;
  /// Rows that have block_types(). May be called from several threads.
  BlockRows blocks(std::int64_t begin, std::int64_t end) const;

  /// Releases the memory of these rows if they belong to a mapped file.
  void give_back(std::int64_t begin, std::int64_t end) const;

 private:
  // Consecutive rows of one of the files' tensors.
  struct Run {
    const std::string& name;
    std::int64_t begin, end;
  };
  bool transposed() const;
  void each_run(std::int64_t begin, std::int64_t end, c10::function_ref<void(const Run&)> visit) const;

  std::vector<std::int64_t> shape_;
  at::Tensor tensor_;                 // or
  StoredWeight stored_;               // whose names hold the rows
  std::vector<std::int64_t> begins_;  // index of the first row of each name among all rows
  std::vector<std::int64_t> order_;   // that index of each row here; empty if the files have columns
};

/// The matrices that a model's modules lack because they will be packed: no copy of them is in memory. The
/// modules have only their shapes (ParameterInit::kDeferred).
class StoredWeights {
 public:
  explicit StoredWeights(std::shared_ptr<const PackedParts> packed = nullptr) : packed_(std::move(packed)) {}

  /// The directory's packed weights; null if it has weights of modules.
  const std::shared_ptr<const PackedParts>& packed() const { return packed_; }

  void add(const at::Tensor& parameter, StoredWeight stored);

  bool contains(const at::Tensor& parameter) const;

  /// True if a matrix is quantized in its file.
  bool has_blocks() const;

  /// A module's parameter, from the module or from the file.
  WeightRows rows_of(const at::Tensor& parameter) const;

  /// Loads the parameter, if it is in the files, so that its module can compute.
  void load(at::Tensor parameter) const;
  /// The same for all of them. Throws Error if the others are packed.
  void load_all() const;

 private:
  struct Entry {
    at::Tensor parameter;
    StoredWeight stored;
  };
  std::shared_ptr<const PackedParts> packed_;
  std::map<const c10::TensorImpl*, Entry> entries_;
};

/// Throws FieldError if the model lacks the numbers of a weight: they are packed and released, or in a file.
void require_weights(const Model& model);

}  // namespace zoo
