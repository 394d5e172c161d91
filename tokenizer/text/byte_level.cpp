#include "tokenizer/text/byte_level.h"

#include <cstdio>

#include "data/base/lines.h"
#include "tokenizer/text/utf8.h"

namespace zoo {

char32_t byte_level_character(unsigned char byte) {
  // The bytes without a glyph: 0-32, 127-160 and 173 (the soft hyphen).
  if (byte <= 0x20) return 0x100u + byte;
  if (byte >= 0x7F && byte <= 0xA0) return 0x121u + (byte - 0x7Fu);
  if (byte == 0xAD) return 0x143;
  return byte;
}

std::optional<unsigned char> byte_level_byte(char32_t character) {
  const char32_t found = character < 0x100   ? character
                         : character < 0x121 ? character - 0x100
                         : character < 0x143 ? character - 0x121 + 0x7F
                                             : 0xAD;
  const auto byte = static_cast<unsigned char>(found);
  return byte_level_character(byte) == character ? std::optional(byte) : std::nullopt;
}

std::vector<std::string> byte_level_alphabet() {
  std::vector<std::string> characters;
  for (int byte = 0; byte < 256; ++byte)
    characters.push_back(utf8_of(byte_level_character(static_cast<unsigned char>(byte))));
  return characters;
}

std::string to_byte_level(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) append_utf8(text, byte_level_character(static_cast<unsigned char>(byte)));
  return text;
}

std::optional<std::string> from_byte_level(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = byte_level_byte(next_code_point(text, at));
    if (!byte) return std::nullopt;
    bytes += static_cast<char>(*byte);
  }
  return bytes;
}

std::string fallback_token(unsigned char byte) {
  char token[8];
  std::snprintf(token, sizeof token, "<0x%02X>", byte);
  return token;
}

std::optional<unsigned char> fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return std::nullopt;
  return number_in<unsigned char>(token.substr(3, 2), 16);
}

}  // namespace zoo
