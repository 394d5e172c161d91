#include "apps/command/standard_output.h"

#include <cerrno>
#include <csignal>
#include <cstring>

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/base/error.h"

namespace zoo {

bool reader_left() {
  pollfd output{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  return ::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

bool is_read_along() {
  struct stat status {};
  return ::fstat(STDOUT_FILENO, &status) == 0 && !S_ISREG(status.st_mode);
}

StandardOutput::StandardOutput() : before_(std::cout.rdbuf(this)) {
  std::signal(SIGPIPE, SIG_IGN);
  setp(buffer_.data(), buffer_.data() + buffer_.size());
  // Makes the stream rethrow exceptions of its buffer instead of only setting a flag.
  std::cout.exceptions(std::ios::badbit);
  // Untied: otherwise each line read, or message on std::cerr, would flush std::cout and could throw a second
  // error.
  std::cin.tie(nullptr);
  std::cerr.tie(nullptr);
}

StandardOutput::~StandardOutput() {
  std::cout.exceptions(std::ios::goodbit);
  std::cout.rdbuf(before_);
}

void StandardOutput::flush_what_is_left() noexcept {
  try {
    sync();
  } catch (...) {
    // The caller is about to report another error.
  }
}

void StandardOutput::write_all(const char* text, std::size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(STDOUT_FILENO, text, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EPIPE) throw ReaderLeft{};
    if (written < 0) throw Error("cannot write to standard output: ", std::strerror(errno));
    text += written;
    size -= static_cast<std::size_t>(written);
  }
}

int StandardOutput::sync() {
  const auto size = static_cast<std::size_t>(pptr() - pbase());
  setp(buffer_.data(), buffer_.data() + buffer_.size());
  write_all(buffer_.data(), size);
  return 0;
}

int StandardOutput::overflow(int character) {
  sync();
  if (character != traits_type::eof()) sputc(traits_type::to_char_type(character));
  return traits_type::not_eof(character);
}

std::streamsize StandardOutput::xsputn(const char* text, std::streamsize size) {
  if (size > epptr() - pptr()) sync();
  if (size > epptr() - pptr()) {
    write_all(text, static_cast<std::size_t>(size));
  } else {
    std::memcpy(pptr(), text, static_cast<std::size_t>(size));
    pbump(static_cast<int>(size));
  }
  return size;
}

}  // namespace zoo
