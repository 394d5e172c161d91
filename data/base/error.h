#pragma once

/// @file
/// Use:
///
///     if (lines < 2) throw zoo::Error(path, ": expected at least ", 2, " lines, found ", lines);

#include <concepts>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>

namespace zoo {

/// An error in external input: a file, a flag, a text. The message names the file, key or flag and what was
/// expected; its parts are concatenated, with paths in single quotes.
class Error : public std::runtime_error {
 public:
  template <class... Parts> explicit Error(const Parts&... parts) : std::runtime_error(join(parts...)) {}

 protected:
  template <class... Parts> static std::string join(const Parts&... parts) {
    std::ostringstream message;
    (add(message, parts), ...);
    return message.str();
  }

 private:
  template <class Part> static void add(std::ostringstream& message, const Part& part) {
    if constexpr (std::derived_from<Part, std::filesystem::path>) message << '\'' << part.string() << '\'';
    else message << part;
  }
};

}  // namespace zoo
