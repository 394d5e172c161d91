#pragma once

#include <array>
#include <streambuf>

namespace zoo {

/// Thrown by a write to std::cout after its reader has exited, as in `tzoo … | head`: a reason to stop, not
/// an error.
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
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;
  void write_all(const char* text, std::size_t size);

  std::array<char, 1 << 16> buffer_;
  std::streambuf* before_;
};

}  // namespace zoo
