#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// Terminal columns of the text: 2 for East Asian wide characters and emoji, 0 for combining marks. Invalid
/// UTF-8 counts as U+FFFD.
int display_width(std::string_view text);

/// Longest prefix of the text that fits into `columns`.
std::string fit(std::string_view text, int columns);

/// The text's words in lines of at most `columns` columns. A longer word is broken. At least one line.
std::vector<std::string> wrapped_lines(std::string_view text, int columns);

/// The text in lines of at most `columns`, indented by `indent` spaces after the first.
std::string wrap(std::string_view text, int columns, int indent = 0);

}  // namespace zoo
