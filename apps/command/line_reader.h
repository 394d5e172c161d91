#pragma once

#include <optional>
#include <string>

namespace zoo {

/// Reads lines of standard input. At a terminal it shows a prompt, and if tzoo is built with libedit the
/// line can be edited and earlier lines are reached by the arrow keys; the history ends with the program.
class LineReader {
 public:
  explicit LineReader(std::string prompt);

  /// The next line without its end; nothing at the end of the input.
  std::optional<std::string> next();

 private:
  std::string prompt_;
  bool at_terminal_;
};

}  // namespace zoo
