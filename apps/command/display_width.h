#pragma once

#include <string>
#include <string_view>

namespace zoo {

/// Terminal columns of the text: 2 for East Asian wide characters and emoji, 0 for combining marks. Invalid
/// UTF-8 counts as U+FFFD.
int display_width(std::string_view text);

/// Longest prefix of the text that fits into `columns`.
std::string fit(std::string_view text, int columns);

}  // namespace zoo
