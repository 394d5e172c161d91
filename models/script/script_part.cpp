#include "models/script/script_part.h"

#include <array>
#include <charconv>

#include <c10/util/Exception.h>

namespace zoo::script {

std::string fill(std::string_view text, const std::vector<std::pair<std::string_view, std::string>>& values) {
  std::string filled;
  while (!text.empty()) {
    const std::size_t dollar = text.find('$');
    filled += text.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    text.remove_prefix(dollar + 1);
    constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyz_";
    const std::string_view name = text.substr(0, text.find_first_not_of(kLetters));
    const std::string* value = nullptr;
    for (const auto& [known, replacement] : values) {
      if (known == name) value = &replacement;
    }
    TORCH_CHECK(value != nullptr, "the TorchScript text has no value for $", std::string(name));
    filled += *value;
    text.remove_prefix(name.size());
  }
  return filled;
}

std::string literal(double value) {
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string text(buffer.data(), end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace zoo::script
