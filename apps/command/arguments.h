#pragma once

#include <string>
#include <vector>

#include "data/base/error.h"

namespace zoo {

struct CommandOutline;

/// What a verb was called with: the words after its name, and that name as help and errors write it ("tzoo
/// train").
struct Arguments {
  std::string command;
  std::vector<std::string> words;
  /// Not null: the verb describes itself there and does nothing else. Flags::parse and dispatch do it, so
  /// that a verb needs no code for it.
  CommandOutline* outline = nullptr;
};

/// A fault in how the command was called. main ends with exit code 2 where another Error gives 1.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace zoo
