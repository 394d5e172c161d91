#include "apps/command/lines.h"

#include <iostream>

#include "data/base/error.h"

namespace zoo {

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
