#pragma once

/// @file
/// Use:
///
///     const zoo::PackedParts parts("kjv-int8");  // a directory of tzoo export --format packed
///     std::cout << parts.weights() << " weights of " << parts.source() << "\n";

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>

#include <ATen/core/Tensor.h>

#include "models/checkpoint/load_report.h"
#include "models/formats/weight_files.h"
#include "models/model_io.h"

namespace zoo {

class StoredWeights;
struct CheckpointConfig;

/// The file of a directory that `tzoo export --format packed` wrote: weights in the layout of the inference
/// kernels, which use them from the mapped file, and the weights that are not packed, in their own type. Both
/// have the names of the model's parameters; a packed one has an ending. Its header has "format", "layout",
/// "weights" (their type), "source" (the original checkpoint) and, if one was merged into it, "adapter".
class PackedParts {
 public:
  static constexpr const char *kFile = "packed.safetensors", *kFormat = "tzoo-packed", *kLayout = "2";

  static bool exist_in(const std::filesystem::path& directory);

  /// Maps the file. Throws Error naming it if it is damaged, is no such file or has another layout.
  explicit PackedParts(const std::filesystem::path& directory);

  /// Type of the packed weights: "float32", "bfloat16", "int8" or "int4".
  const std::string& weights() const { return weights_; }

  /// The name of the checkpoint that they were packed from.
  const std::string& source() const { return source_; }

  const WeightFiles& files() const { return *files_; }

  /// Sets the weights of `checkpoint`'s model that are not packed and adds matrices among them to `stored`,
  /// converted to `dtype`. Throws Error naming all mismatches.
  LoadReport load(Model& model, const CheckpointConfig& checkpoint, StoredWeights& stored,
                  at::ScalarType dtype);

  /// A packed part of a parameter: a view of the mapped file. Throws Error naming it if it is missing or has
  /// another type or shape.
  at::Tensor take(const at::Tensor& parameter, const std::string& ending, at::ScalarType dtype,
                  at::IntArrayRef shape) const;

  /// Throws Error naming the unused packed parts.
  void require_all_taken() const;

  /// Throws Error: the directory has no weights for modules.
  [[noreturn]] void refuse_modules() const;

 private:
  bool has(const std::string& prefix) const;

  std::filesystem::path directory_, path_;
  std::string weights_, source_;
  std::string adapter_;  // as it follows the source in a command: " --adapter DIR"; empty: none
  std::shared_ptr<const WeightFiles> files_;
  std::map<const c10::TensorImpl*, std::string> names_;  // of the model's weights
  std::set<std::string> beside_;                         // names that are not packed parts
  mutable std::set<std::string> taken_;
};

}  // namespace zoo
