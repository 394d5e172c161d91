#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

#include "models/checkpoint/model_path.h"

namespace zoo {

struct HuggingFaceExport {
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::int64_t tensors = 0;
  std::int64_t bytes = 0;           // size of the weight files
  std::vector<std::string> unused;  // skipped tensors of the source, which belong to other heads
};

/// Writes the checkpoint of `source` as a Hugging Face directory, atomically: weights under the names of
/// Hugging Face's class, in `dtype` or their own type (float32 if the types differ); all keys of its
/// config.json; its tokenizer and generation_config.json unchanged.
///
/// Replaces an existing directory `target` if it is empty or holds nothing but a checkpoint.
/// Throws Error naming what prevents this, or the fault of the source.
HuggingFaceExport export_huggingface(const ModelPath& source, const std::filesystem::path& target,
                                     std::optional<c10::ScalarType> dtype);

/// Reads the weights of both directories again and returns the number of tensors in `target`. Each must equal
/// the source's tensor converted to its type, bit for bit, or be a zero bias that the source lacks; the
/// directory must load. Throws Error naming the first tensor that differs, is missing or is not in the
/// source.
std::int64_t verify_huggingface(const ModelPath& source, const std::filesystem::path& target);

}  // namespace zoo
