#pragma once

#include <functional>
#include <ostream>

namespace zoo {

/// An output for people. The fields are public so that a test can replace them.
struct Terminal {
  std::ostream* out = nullptr;
  bool interactive = false;       // false for a pipe or file
  bool colour = false;            // never with NO_COLOR set (no-color.org)
  std::function<int()> width;     // current number of columns: a window can be resized
  std::function<double()> clock;  // seconds since an arbitrary start
};

/// The terminal on standard error.
Terminal standard_error();

/// Columns of the terminal on standard output, 0 (no limit) for a pipe or file.
int standard_output_width();

/// True if standard output is a terminal and allows colours (no-color.org).
bool standard_output_has_colours();

/// Columns of the terminal at `descriptor`, else $COLUMNS, else 80.
int terminal_width(int descriptor);

}  // namespace zoo
