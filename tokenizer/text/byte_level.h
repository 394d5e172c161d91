#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// The character for `byte` in the vocabulary of a byte-level tokenizer (Radford et al., 2019: GPT-2's
/// bytes_to_unicode): printable Latin-1 maps to itself, the other bytes in order to U+0100, U+0101, …
char32_t byte_level_character(unsigned char byte);

/// The inverse; nothing for a character outside that alphabet.
std::optional<unsigned char> byte_level_byte(char32_t character);

/// The characters of the bytes 0 to 255, as UTF-8.
std::vector<std::string> byte_level_alphabet();

/// " the" to "Ġthe".
std::string to_byte_level(std::string_view bytes);

/// "Ġthe", which is UTF-8, to " the". Nothing if a character is outside the alphabet.
std::optional<std::string> from_byte_level(std::string_view text);

/// The token of a byte in a vocabulary with byte fallback: "<0xC3>".
std::string fallback_token(unsigned char byte);

/// The byte of such a token, also with small letters.
std::optional<unsigned char> fallback_byte(std::string_view token);

}  // namespace zoo
