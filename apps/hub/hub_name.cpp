#include "apps/hub/hub_name.h"

#include <algorithm>
#include <string_view>

#include "data/base/error.h"

namespace zoo {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// The hub's rule, which also prevents parts that leave the cache or are hidden in it.
bool is_part(std::string_view part) {
  return !part.empty() && part.size() <= 96 && is_letter(part.front()) && is_letter(part.back()) &&
         std::ranges::all_of(part, [](char c) { return is_letter(c) || c == '-' || c == '.'; }) &&
         part.find("--") == std::string_view::npos && part.find("..") == std::string_view::npos;
}

// One part, or several separated by slashes.
bool has_parts(std::string_view text, std::size_t most) {
  for (std::size_t count = 1; count <= most; ++count) {
    const std::size_t slash = text.find('/');
    if (!is_part(text.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    text.remove_prefix(slash + 1);
  }
  return false;
}

HubName split(const std::string& text) {
  const std::size_t at = text.find('@');
  if (at == std::string::npos) return {.name = text};
  return {.name = text.substr(0, at), .revision = text.substr(at + 1)};
}

bool is_valid(const HubName& name) {
  return has_parts(name.name, 2) && has_parts(name.revision, 4);
}

}  // namespace

HubName HubName::parse(const std::string& text) {
  HubName name = split(text);
  if (is_valid(name)) return name;
  throw Error("'", text, "' is no model of the hub; expected NAME or OWNER/NAME, such as ",
              "openai-community/gpt2, or NAME@REVISION");
}

bool HubName::fits(const std::string& text) {
  return is_valid(split(text));
}

}  // namespace zoo
