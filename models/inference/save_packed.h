#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "models/checkpoint/checkpoint.h"
#include "models/kernels/packed/packed_weight.h"
#include "tokenizer/token_id.h"

namespace zoo {

/// "float32", "bfloat16", "int8" or "int4".
const char* name_of(kernels::WeightType type);

/// A calibration text for int4 weights (inference::Calibration).
struct CalibrationText {
  std::vector<TokenIds> samples;  // none: each weight is rounded to the nearest
  std::string name;               // of its file, in messages
  std::function<void(std::int64_t done, std::int64_t total)> progress = nullptr;
};

/// Writes the weights of `checkpoint` packed as `type`, in the format of PackedParts, and its config.json
/// into a directory. `source` names the checkpoint and its adapter in messages. Panels begin at multiples of
/// 64 bytes. Throws Error if packed kernels do not run the model.
void save_packed(const CheckpointConfig& checkpoint, kernels::WeightType type, const ModelPath& source,
                 const std::filesystem::path& directory, const CalibrationText& text = {});

}  // namespace zoo
