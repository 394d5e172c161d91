#pragma once

#include <array>
#include <iostream>
#include <streambuf>

namespace zoo {

/// Thrown by a write to std::cout when nobody reads it any more, as in `tzoo … | head`: a reason to stop, no
/// error.
struct ReaderLeft {};

/// While it lives, std::cout is written by it: buffered, and with a failed write thrown at once as Error (a
/// full disk) or ReaderLeft, so that a verb cannot end well with its results lost. Takes SIGPIPE out of the
/// way.
class StandardOutput : private std::streambuf {
 public:
  StandardOutput();
  ~StandardOutput() override;

  /// Before an error is reported: what was printed up to it.
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
