#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <optional>
#include <string>

namespace zoo {

/// std::cin. On a terminal, prints that input is expected and how to end it.
std::istream& standard_input();

/// All of standard_input().
std::string read_standard_input();

/// Calls `use(line, number)` for each line, numbered from 1. Only '\n' ends a line and is not part of it; a
/// last line without '\n' is included. Flushes std::cout before it waits for input, so that a program can
/// wait for each answer. Prefixes the message of an Error from `use` with the line number; a failed read is
/// an Error.
void for_each_line(std::istream& input,
                   const std::function<void(const std::string& line, std::int64_t number)>& use);

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
