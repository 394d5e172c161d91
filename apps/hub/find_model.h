#pragma once

#include <filesystem>
#include <string>

#include "apps/command/flags.h"

namespace zoo {

/// The path that --model means: `given` itself, or the snapshot in Hugging Face's cache of a model of this
/// name. Throws Error if there is neither, with the command that downloads the model, and for a file of
/// weights, with what to give instead.
std::string find_model(const std::string& given);

/// Name of the model at a path, for a page and a server: its name on the hub if it lies in the cache, else
/// its folder's name. Nothing else of the path is told.
std::string model_name(const std::filesystem::path& path);

/// Declares the required flag --model, which find_model() reads; the value may also stand alone.
template <FlagValue T>
void add_model_flag(Flags& flags, T& target,
                    std::string help =
                        "checkpoint directory, GGUF file, or name of a model that tzoo pull has "
                        "downloaded") {
  flags.add("model", target, std::move(help)).leads().placeholder("DIR").read_as(find_model).required();
}

}  // namespace zoo
