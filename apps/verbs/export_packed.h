#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "models/checkpoint/model_path.h"

namespace zoo {

/// Tensors and bytes of the written file of weights, and the tokens of the text by which they were rounded.
struct PackedExport {
  std::int64_t tensors = 0, bytes = 0, calibration_tokens = 0;
};

/// Writes the checkpoint of `source` as a directory of packed weights (PackedParts), atomically, with all
/// that belongs to it: config.json, generation_config.json, tokenizer, Sentence-Transformers' files. Replaces
/// an existing directory `target` if it is empty or holds nothing but a checkpoint. Throws Error naming what
/// prevents this, or the fault of the source. int4 weights are rounded by the text `calibration`
/// (calibration_text()), if it is not empty.
PackedExport export_packed(const ModelPath& source, const std::filesystem::path& target,
                           const std::string& weights, const std::string& calibration);

}  // namespace zoo
