#pragma once

#include <filesystem>
#include <string>

#include "apps/command/flags.h"
#include "models/checkpoint/model_path.h"

namespace zoo {

/// The path for --model: `given`, or the snapshot in Hugging Face's cache of the model with this name. Throws
/// Error if there is neither, with the command that downloads the model, and for a file of weights, with the
/// path to use instead.
std::string find_model(const std::string& given);

/// Name of the model at a path, for a page and a server: its name on the hub if it is in the cache, else its
/// folder's name. Reveals nothing else of the path.
std::string model_name(const std::filesystem::path& path);

/// Declares the required flag --model, resolved by find_model(), whose value may also be given without the
/// flag; and --adapter, whose base_model_name_or_path stands for --model if it is a path here.
void add_model_flag(Flags& flags, ModelPath& target,
                    std::string help =
                        "checkpoint directory, GGUF file, or name of a model that tzoo pull has "
                        "downloaded");

}  // namespace zoo
