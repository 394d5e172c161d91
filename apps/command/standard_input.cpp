#include "apps/command/standard_input.h"

#include <iostream>

#include <unistd.h>
#ifdef ZOO_EDITLINE
#include <clocale>
#include <cstdlib>

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

std::optional<std::string> plain_line() {
  std::string line;
  if (!std::getline(std::cin, line)) return std::nullopt;
  return line;
}

}  // namespace

std::istream& standard_input() {
  const Terminal messages = standard_error();
  if (::isatty(STDIN_FILENO) == 1 && messages.interactive)
    *messages.out << "reading standard input; Ctrl-D at the start of a line ends it\n";
  return std::cin;
}

std::string read_standard_input() { return {std::istreambuf_iterator<char>(standard_input()), {}}; }

void for_each_line(std::istream& input, const std::function<void(const std::string&, std::int64_t)>& use) {
  std::string line;
  for (std::int64_t number = 1; std::getline(input, line); ++number) {
    try {
      use(line, number);
    } catch (const Error& error) {
      throw Error("line ", number, " of the input: ", error.what());
    }
    if (input.rdbuf()->in_avail() <= 0) std::cout.flush();
  }
  if (input.bad()) throw Error("cannot read standard input");
}

LineReader::LineReader(std::string prompt)
    : prompt_(std::move(prompt)), at_terminal_(::isatty(STDIN_FILENO) == 1) {}

std::optional<std::string> LineReader::next() {
  if (!at_terminal_) return plain_line();
#ifdef ZOO_EDITLINE
  std::optional<std::string> line = edited_line(prompt_);
#else
  std::cerr << prompt_ << std::flush;
  std::optional<std::string> line = plain_line();
#endif
  if (!line) std::cerr << "\n";
  return line;
}

}  // namespace zoo
