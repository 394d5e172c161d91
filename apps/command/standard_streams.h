#pragma once

#include <array>
#include <istream>
#include <optional>
#include <streambuf>
#include <string>

namespace zoo {

/// Thrown by a write to std::cout after its reader has exited, as in `tzoo … | head`: no error.
struct ReaderLeft {};

/// True if standard output is a pipe whose reader has exited, so that further results are useless.
bool reader_left();

/// True if standard output is not a file, so that somebody may be watching.
bool is_read_along();

/// While in scope, buffers std::cout and throws at once on a failed write, Error (a full disk) or ReaderLeft,
/// so that a verb cannot succeed if its results are lost. Ignores SIGPIPE.
class StandardOutput : private std::streambuf {
 public:
  StandardOutput();
  ~StandardOutput() override;

  /// Call before reporting an error: writes the buffered output.
  void flush_what_is_left() noexcept;

 private:
  int overflow(int character) override;
  int sync() override;

  std::array<char, 1 << 16> buffer_;
  std::streambuf* before_;
};

/// std::cin. On a terminal, prints that input is expected and how to end it.
std::istream& standard_input();

std::string read_standard_input();

/// Reads a line of a text file or of standard input, without its end "\n" or "\r\n" and, if it is the first,
/// without a byte order mark. False at the end of the input.
bool next_line(std::istream& input, std::string& line, bool first);

/// The next line of standard input, without its end; nothing at the end of the input. A terminal shows the
/// prompt; if tzoo is built with libedit, the line can be edited and the arrow keys recall earlier lines. The
/// history ends with the program. `first`: a byte order mark before the line is dropped.
std::optional<std::string> asked_line(const std::string& prompt, bool first);

}  // namespace zoo
