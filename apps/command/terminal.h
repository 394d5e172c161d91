#pragma once

#include <functional>
#include <ostream>

namespace zoo {

/// A place that a person watches. The fields are open so that a test can put its own in.
struct Terminal {
  std::ostream* out = nullptr;
  bool interactive = false;       // false: a pipe or file
  bool colour = false;            // never with NO_COLOR set (no-color.org)
  std::function<int()> width;     // columns, asked anew each time: a window changes its size
  std::function<double()> clock;  // seconds from any beginning
};

/// Standard error.
Terminal standard_error();

/// Columns of the terminal on standard output, 0 (no limit) where it is a pipe or file.
int standard_output_width();

/// True if standard output is a terminal that may be given colours (no-color.org).
bool standard_output_has_colours();

/// Columns of the terminal behind `descriptor`, else of $COLUMNS, else 80.
int terminal_width(int descriptor);

}  // namespace zoo
