#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// An output for people. The fields are public so that a test can replace them.
struct Terminal {
  std::ostream* out = nullptr;
  bool interactive = false;       // false for a pipe or file
  bool colour = false;            // never with NO_COLOR set (no-color.org)
  std::function<int()> width;     // current number of columns: a window can be resized
  std::function<double()> clock;  // seconds since an arbitrary start
};

Terminal standard_error();

/// Columns of the terminal on standard output, 0 (no limit) for a pipe or file.
int standard_output_width();

/// Columns for paragraphs on standard output: those of the terminal, 40 to 100; 100 for a pipe or file.
int paragraph_width();

/// The text, wrapped for the terminal on standard output but not for a pipe or file, and a line end.
std::string paragraph(const std::string& text);

/// True if standard output is a terminal and allows colours (no-color.org).
bool standard_output_has_colours();

/// Terminal columns: 2 for East Asian wide characters and emoji, 0 for combining marks, 1 for invalid UTF-8.
int display_width(std::string_view text);

/// Longest prefix of the text that fits into `columns`.
std::string fit(std::string_view text, int columns);

/// The text's words in lines of at most `columns` columns. A longer word is broken. At least one line.
std::vector<std::string> wrapped_lines(std::string_view text, int columns);

/// The text in lines of at most `columns`, indented by `indent` spaces after the first.
std::string wrap(std::string_view text, int columns, int indent = 0);

}  // namespace zoo
