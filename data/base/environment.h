#pragma once

#include <cstdlib>
#include <string>

namespace zoo {

/// The value of an environment variable; "" if it is unset.
inline std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace zoo
