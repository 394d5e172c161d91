#pragma once

#include <optional>
#include <string>

namespace zoo {

/// Reads lines of standard input. At a terminal it shows a prompt; if tzoo is built with libedit, the line
/// can be edited and the arrow keys recall earlier lines. The history ends with the program.
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
