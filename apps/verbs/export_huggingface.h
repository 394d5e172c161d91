#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

namespace zoo {

struct HuggingFaceExport {
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::int64_t tensors = 0;
  std::int64_t bytes = 0;           // of the files of weights
  std::vector<std::string> unused;  // tensors of the source that belong to other heads and were left out
};

/// Writes the checkpoint of `source` anew as a Hugging Face directory, whole or not at all: weights under the
/// names of Hugging Face's class, in the type that they have (of several types float32, which holds them all)
/// or in `dtype`; the keys of its config.json, and its tokenizer and generation_config.json as they are.
///
/// A directory `target` that exists is replaced if it is empty or holds a checkpoint and nothing else.
/// Throws Error naming what stands in the way, or what is wrong with the source.
HuggingFaceExport export_huggingface(const std::filesystem::path& source, const std::filesystem::path& target,
                                     std::optional<c10::ScalarType> dtype);

/// Reads the weights of both directories again and returns the number of tensors in `target`: each is equal,
/// in every bit, to the source's converted to its type, or a bias of zeros that the source does not have, and
/// the directory loads. Throws Error naming the first tensor that differs, is missing or is not of the
/// source.
std::int64_t verify_huggingface(const std::filesystem::path& source, const std::filesystem::path& target);

}  // namespace zoo
