#include "apps/command/standard_streams.h"

#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef ZOO_EDITLINE
#include <editline/readline.h>
#endif

#include "apps/command/terminal.h"
#include "data/base/error.h"

namespace zoo {
namespace {

#ifdef ZOO_EDITLINE
std::optional<std::string> edited_line(const std::string& prompt) {
  static const char* const locale = std::setlocale(LC_CTYPE, "C.UTF-8");  // libedit reads characters of it
  static_cast<void>(locale);
  rl_outstream = stderr;  // standard output is only for answers
  char* line = readline(prompt.c_str());
  if (line == nullptr) return std::nullopt;
  if (*line != '\0') add_history(line);
  std::string text = line;
  std::free(line);
  return text;
}
#endif

std::optional<std::string> plain_line(bool first) {
  std::string line;
  return next_line(std::cin, line, first) ? std::optional(line) : std::nullopt;
}

}  // namespace

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
  // Tied, each line read, or message on std::cerr, would flush std::cout and could throw a second error.
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

int StandardOutput::sync() {
  const char* text = pbase();
  auto size = static_cast<std::size_t>(pptr() - pbase());
  setp(buffer_.data(), buffer_.data() + buffer_.size());
  while (size > 0) {
    const ssize_t written = ::write(STDOUT_FILENO, text, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EPIPE) throw ReaderLeft{};
    if (written < 0) throw Error("cannot write to standard output: ", std::strerror(errno));
    text += written;
    size -= static_cast<std::size_t>(written);
  }
  return 0;
}

int StandardOutput::overflow(int character) {
  sync();
  if (character != traits_type::eof()) sputc(traits_type::to_char_type(character));
  return traits_type::not_eof(character);
}

std::istream& standard_input() {
  const Terminal messages = standard_error();
  if (::isatty(STDIN_FILENO) == 1 && messages.interactive)
    *messages.out << "reading standard input; Ctrl-D at the start of a line ends it\n";
  return std::cin;
}

std::string read_standard_input() { return {std::istreambuf_iterator<char>(standard_input()), {}}; }

bool next_line(std::istream& input, std::string& line, bool first) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (!std::getline(input, line)) return false;
  if (line.ends_with('\r')) line.pop_back();
  if (first && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
  return true;
}

std::optional<std::string> asked_line(const std::string& prompt, bool first) {
  if (::isatty(STDIN_FILENO) != 1) return plain_line(first);
#ifdef ZOO_EDITLINE
  std::optional<std::string> line = edited_line(prompt);
#else
  std::cerr << prompt << std::flush;
  std::optional<std::string> line = plain_line(/*first=*/false);
#endif
  if (!line) std::cerr << "\n";
  return line;
}

}  // namespace zoo
