#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zoo {

/// Bytes [begin, end) of a text.
struct ByteRange {
  std::uint32_t begin = 0, end = 0;
  bool operator==(const ByteRange&) const = default;
};

/// The byte offset of the first invalid sequence in `text`; nothing if it is UTF-8 (RFC 3629: no overlong
/// forms, no surrogates, nothing above U+10FFFF).
std::optional<std::size_t> invalid_utf8_at(std::string_view text);

/// Throws Error "invalid UTF-8 in WHAT at byte OFFSET (line N)"; offsets count from 0, lines from 1.
void require_utf8(std::string_view text, std::string_view what);

/// The line, counted from 1, of the byte at `offset`.
std::size_t line_of(std::string_view text, std::size_t offset);

constexpr bool is_ascii_letter(char32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool is_ascii_digit(char32_t c) { return c >= '0' && c <= '9'; }

/// The code point that begins at text[at], a character boundary of UTF-8; advances `at`.
inline char32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at + i]));
  };
  const auto tail = [&](std::size_t i) { return byte(i) & 0x3F; };
  const char32_t lead = byte(0);
  char32_t result = lead;
  std::size_t size = 1;
  if (lead >= 0xF0) {
    result = (lead & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3);
    size = 4;
  } else if (lead >= 0xE0) {
    result = (lead & 0x0F) << 12 | tail(1) << 6 | tail(2);
    size = 3;
  } else if (lead >= 0x80) {
    result = (lead & 0x1F) << 6 | tail(1);
    size = 2;
  }
  at += size;
  return result;
}

/// The end of the character that begins at text[at].
inline std::size_t character_end(std::string_view text, std::size_t at) {
  next_code_point(text, at);
  return at;
}

/// True for a continuation byte of UTF-8.
inline bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

/// The beginning of the character that ends before text[end], end > 0.
inline std::size_t character_begin(std::string_view text, std::size_t end) {
  while (continues_character(text[--end]) && end > 0) continue;
  return end;
}

/// The character that ends before text[end], end > 0.
inline char32_t character_before(std::string_view text, std::size_t end) {
  end = character_begin(text, end);
  return next_code_point(text, end);
}

/// The first position from `from` on at which a character of a UTF-8 text begins, or its end.
inline std::size_t next_character(std::string_view text, std::size_t from) {
  while (from < text.size() && continues_character(text[from])) ++from;
  return from;
}

std::size_t count_characters(std::string_view text);

/// Appends a code point, which must be at most U+10FFFF and not a surrogate.
void append_utf8(std::string& text, char32_t code_point);
std::string utf8_of(std::u32string_view code_points);
inline std::string utf8_of(char32_t code_point) { return utf8_of(std::u32string_view(&code_point, 1)); }

/// A character for error messages: "'é' (U+00E9)"; a control character as "U+0009".
std::string describe_character(char32_t code_point);

/// The number of bytes at the end of `text` (0 to 3) that begin an incomplete character.
std::size_t incomplete_utf8_tail(std::string_view text);

/// For messages: a text of at most `bytes`, or the first characters that fit and "…".
std::string excerpt(std::string_view text, std::size_t bytes);

/// U+FFFD
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

/// U+2581, sentencepiece's mark of a space
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

/// Replaces each invalid sequence by U+FFFD (the longest start of a character, else one byte, as browsers and
/// Python's errors="replace" do).
std::string replace_invalid_utf8(std::string_view text);

}  // namespace zoo
