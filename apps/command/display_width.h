#pragma once

#include <string>
#include <string_view>

namespace zoo {

/// Columns that the text takes on a terminal: 2 for East Asian wide characters and emoji, 0 for combining
/// marks. What is not UTF-8 counts as U+FFFD.
int display_width(std::string_view text);

/// The longest beginning of the text that takes at most `columns`.
std::string fit(std::string_view text, int columns);

}  // namespace zoo
