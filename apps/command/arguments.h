#pragma once

#include <string>
#include <vector>

#include "data/base/error.h"

namespace zoo {

/// What a verb was called with: the words after its name, and that name as help and errors write it ("tzoo
/// train").
struct Arguments {
  std::string command;
  std::vector<std::string> words;
};

/// A fault in how the command was called. main ends with exit code 2 where another Error gives 1.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace zoo
