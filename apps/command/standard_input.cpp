#include "apps/command/standard_input.h"

#include <iostream>

#include <unistd.h>

#include "apps/command/terminal.h"
#include "data/base/error.h"

namespace zoo {

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

}  // namespace zoo
