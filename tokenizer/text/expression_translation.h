#pragma once

#include <string>
#include <string_view>

namespace zoo {

/// A regular expression of Oniguruma, the engine of `tokenizers`, as one that ICU matches alike: each class
/// becomes the set of its characters in Oniguruma's Unicode version, and each anchor is spelled out. Throws
/// Error naming the part that has no equal, such as backreferences.
std::string icu_expression(std::string_view oniguruma);

}  // namespace zoo
