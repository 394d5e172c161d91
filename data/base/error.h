#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace zoo {

/// What is thrown for a fault in what came from outside: a file, a flag, a text. The message names the file,
/// key or flag and what was expected; its parts are written one after the other.
class Error : public std::runtime_error {
 public:
  template <class... Parts>
  explicit Error(const Parts&... parts) : std::runtime_error(join(parts...)) {}

 private:
  template <class... Parts>
  static std::string join(const Parts&... parts) {
    std::ostringstream message;
    (message << ... << parts);
    return message.str();
  }
};

}  // namespace zoo
