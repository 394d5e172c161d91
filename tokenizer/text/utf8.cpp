#include "tokenizer/text/utf8.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "data/base/error.h"

namespace zoo {
namespace {

enum class Sequence { complete, truncated, invalid };

struct Scan {
  Sequence kind;
  std::size_t size;  // of the character, else of the invalid sequence (at least 1)
};

// Table 3-7 of the Unicode standard: the lead byte gives the number of bytes and restricts the second one,
// which excludes overlong forms, surrogates and values above U+10FFFF.
Scan scan(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {Sequence::complete, 1};
  if (lead < 0xC2 || lead > 0xF4) return {Sequence::invalid, 1};
  const std::size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  unsigned char low = 0x80, high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  for (std::size_t i = 1; i < size; ++i) {
    if (at + i == text.size()) return {Sequence::truncated, i};
    if (byte(i) < low || byte(i) > high) return {Sequence::invalid, i};
    low = 0x80;
    high = 0xBF;
  }
  return {Sequence::complete, size};
}

// Skips eight ASCII bytes at a time, because most text is ASCII.
std::size_t skip_ascii(std::string_view text, std::size_t at) {
  while (at + sizeof(std::uint64_t) <= text.size()) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + at, sizeof word);
    if ((word & 0x8080808080808080u) != 0) break;
    at += sizeof word;
  }
  return at;
}

}  // namespace

std::optional<std::size_t> invalid_utf8_at(std::string_view text) {
  std::size_t at = 0;
  while ((at = skip_ascii(text, at)) < text.size()) {
    // Then tries eight ASCII bytes again.
    const std::size_t stop = std::min(at + sizeof(std::uint64_t), text.size());
    while (at < stop) {
      const Scan found = scan(text, at);
      if (found.kind != Sequence::complete) return at;
      at += found.size;
    }
  }
  return std::nullopt;
}

void require_utf8(std::string_view text, std::string_view what) {
  if (const auto at = invalid_utf8_at(text))
    throw Error("invalid UTF-8 in ", what, " at byte ", *at, " (line ", line_of(text, *at), ")");
}

std::size_t line_of(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  return 1 + static_cast<std::size_t>(std::ranges::count(before, '\n'));
}

std::size_t count_characters(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, continues_character));
}

void append_utf8(std::string& text, char32_t code_point) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | (code_point >> shift & 0x3F)); };
  if (code_point < 0x80) {
    text += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    text += {static_cast<char>(0xC0 | code_point >> 6), tail(0)};
  } else if (code_point < 0x10000) {
    text += {static_cast<char>(0xE0 | code_point >> 12), tail(6), tail(0)};
  } else {
    text += {static_cast<char>(0xF0 | code_point >> 18), tail(12), tail(6), tail(0)};
  }
}

std::string utf8_of(std::u32string_view code_points) {
  std::string text;
  for (const char32_t code_point : code_points) append_utf8(text, code_point);
  return text;
}

std::string describe_character(char32_t code_point) {
  char number[16];
  std::snprintf(number, sizeof number, "U+%04X", static_cast<unsigned>(code_point));
  const bool is_control = code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0);
  if (is_control) return number;
  return "'" + utf8_of(code_point) + "' (" + number + ")";
}

std::size_t incomplete_utf8_tail(std::string_view text) {
  for (std::size_t size = 1; size <= std::min<std::size_t>(3, text.size()); ++size) {
    const auto byte = static_cast<unsigned char>(text[text.size() - size]);
    if (byte < 0x80) return 0;
    if (byte < 0xC0) continue;
    return scan(text, text.size() - size).kind == Sequence::truncated ? size : 0;
  }
  return 0;
}

std::string excerpt(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  const std::string_view start = text.substr(0, bytes);
  return std::string(start.substr(0, start.size() - incomplete_utf8_tail(start))) + "…";
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Scan found = scan(text, at);
    if (found.kind == Sequence::complete) {
      result += text.substr(at, found.size);
    } else {
      append_utf8(result, 0xFFFD);
    }
    at += found.size;
  }
  return result;
}

}  // namespace zoo
