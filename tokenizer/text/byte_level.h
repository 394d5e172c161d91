#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace zoo {

/// The character that stands for `byte` in the vocabulary of a byte-level tokenizer (Radford et al., 2019:
/// GPT-2's bytes_to_unicode): printable Latin-1 is itself, the other bytes are U+0100, U+0101, … in their
/// order.
char32_t byte_level_character(unsigned char byte);

/// The byte that a character of that alphabet stands for, nothing for another character.
std::optional<unsigned char> byte_level_byte(char32_t character);

/// " the" to "Ġthe".
std::string to_byte_level(std::string_view bytes);

/// "Ġthe", which is UTF-8, to " the". Nothing if it holds a character that is not of the alphabet.
std::optional<std::string> from_byte_level(std::string_view text);

/// How a vocabulary with byte fallback writes a byte: "<0xC3>".
std::string fallback_token(unsigned char byte);

}  // namespace zoo
