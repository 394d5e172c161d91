#pragma once

#include <string>

namespace zoo {

/// The path that --model means: `given` itself, or the snapshot in Hugging Face's cache of a model of this
/// name. Throws Error if there is neither, with the command that downloads the model, and for a file of
/// weights, with what to give instead.
std::string find_model(const std::string& given);

}  // namespace zoo
