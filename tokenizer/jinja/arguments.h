#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/jinja/value.h"

namespace zoo::chat {

/// The arguments of a call.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  /// The argument of each parameter, nullptr if none is given. Throws Fault for an argument without a
  /// parameter, and if fewer than `required` parameters have one.
  std::vector<const Value*> bind(std::initializer_list<const char*> parameters,
                                 std::size_t required = 0) const;
};

}  // namespace zoo::chat
