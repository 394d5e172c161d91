#pragma once

#include <functional>
#include <string_view>

#include "apps/verbs/generate/generate_flags.h"

namespace zoo {

/// Reads the model's config.json and generation_config.json, and, unless generation_defaults is "ours", sets
/// the flags that are not given to what the checkpoint's generation_config.json says (config.json if it is
/// missing), as transformers does. `given` tells whether the command line has a flag. A flag chooses between
/// sampling and beam search: a file's keys for the other are then left out. Throws Error naming file and key
/// for a value of the wrong type and for a key that changes the ids but is not supported.
void apply_generation_config(GenerateFlags& flags, const std::function<bool(std::string_view)>& given);

}  // namespace zoo
