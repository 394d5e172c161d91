#include "tokenizer/constraint/json_pointer.h"

#include <charconv>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace zoo {
namespace {

// Without percent escapes; nothing if one is malformed.
std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const std::string_view digits = text.substr(i + 1, 2);
    unsigned byte = 0;
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (fault != std::errc() || digits.size() < 2 || end != digits.data() + 2) return std::nullopt;
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

// "~1" is "/", "~0" is "~"; nothing for another ~.
std::optional<std::string> unescaped(std::string_view token) {
  std::string text;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '~') {
      text += token[i];
      continue;
    }
    const char code = ++i < token.size() ? token[i] : ' ';
    if (code != '0' && code != '1') return std::nullopt;
    text += code == '0' ? '~' : '/';
  }
  return text;
}

const nlohmann::ordered_json* child(const nlohmann::ordered_json& value, const std::string& token) {
  if (value.is_object()) {
    const auto found = value.find(token);
    return found == value.end() ? nullptr : &*found;
  }
  std::size_t index = 0;
  const auto [end, fault] = std::from_chars(token.data(), token.data() + token.size(), index);
  const bool is_index = fault == std::errc() && end == token.data() + token.size();
  return value.is_array() && is_index && index < value.size() ? &value[index] : nullptr;
}

}  // namespace

const nlohmann::ordered_json* find_by_pointer(const nlohmann::ordered_json& root, std::string_view fragment) {
  const std::optional<std::string> decoded = percent_decoded(fragment);
  if (!decoded) return nullptr;
  std::string_view rest = *decoded;
  const nlohmann::ordered_json* here = &root;
  while (here != nullptr && !rest.empty()) {
    if (rest[0] != '/') return nullptr;
    const std::size_t end = std::min(rest.find('/', 1), rest.size());
    const std::optional<std::string> token = unescaped(rest.substr(1, end - 1));
    here = token ? child(*here, *token) : nullptr;
    rest.remove_prefix(end);
  }
  return here;
}

}  // namespace zoo
