#pragma once

#include <string>
#include <string_view>

namespace zoo {

/// Translates a regular expression of Oniguruma, the engine of `tokenizers`, to an equivalent one for ICU:
/// each class becomes the set of its characters in Oniguruma's Unicode version, and each anchor is spelled
/// out. Throws Error naming the part without an equivalent, such as backreferences.
std::string icu_expression(std::string_view oniguruma);

}  // namespace zoo
