#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace zoo::fuzz {

/// Each target defines it: reads any bytes as a user's file, or throws Error. Another exception, a signal, a
/// sanitizer's report or more than a minute is a fault.
void read(std::string_view input);

/// The parts of an input that stands for several files: between bytes of zero. Always `count` of them.
inline std::vector<std::string_view> parts_of(std::string_view input, std::size_t count) {
  std::vector<std::string_view> parts;
  while (parts.size() + 1 < count) {
    const std::size_t end = std::min(input.find('\0'), input.size());
    parts.push_back(input.substr(0, end));
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  parts.push_back(input);
  return parts;
}

}  // namespace zoo::fuzz
