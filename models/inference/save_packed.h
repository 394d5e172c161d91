#pragma once

#include <filesystem>
#include <string>

#include "models/checkpoint/checkpoint.h"
#include "models/kernels/packed/packed_weight.h"

namespace zoo {

/// "float32", "bfloat16", "int8" or "int4".
const char* name_of(kernels::WeightType type);

/// Writes the weights of `checkpoint` packed as `type`, as PackedParts reads them, and its config.json into a
/// directory. `source` is what a message calls the checkpoint. Panels begin at multiples of 64 bytes. Throws
/// Error if packed kernels do not run the model.
void save_packed(const CheckpointConfig& checkpoint, kernels::WeightType type, const std::string& source,
                 const std::filesystem::path& directory);

}  // namespace zoo
