#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/text/utf8.h"

namespace zoo {

/// The character classes of the split patterns: one bit per class, and at most one bit per character except
/// `\r` and `\n`. The tables are Unicode 16.0's, as in the engines of `tokenizers` and tiktoken.
struct CharacterClass {
  static constexpr std::uint8_t kSpace = 1;      // \s
  static constexpr std::uint8_t kNewline = 2;    // \r and \n, which are also \s
  static constexpr std::uint8_t kNumber = 4;     // \p{N}
  static constexpr std::uint8_t kUpper = 8;      // \p{Lu} and \p{Lt}
  static constexpr std::uint8_t kLower = 16;     // \p{Ll}
  static constexpr std::uint8_t kCaseless = 32;  // \p{Lm} and \p{Lo}
  static constexpr std::uint8_t kMark = 64;      // \p{M}

  static constexpr std::uint8_t kLetter = kUpper | kLower | kCaseless;  // \p{L}
};

/// A list of character_classes.txt: Category, Script, Space, OtherAlphabetic, OtherUppercase, OtherLowercase.
std::string character_ranges(std::string_view list);

/// Calls use(name, first, last) for the ranges of such a list, which names the set of each code point from 0
/// on, with the length of the range if it is not 1: "Cc32ZsPo3". "X" is no set, "Lul" Lu and Ll by turns.
template <class Use> void for_each_range(std::string_view list, Use use) {
  char32_t first = 0;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t begin = at++;
    while (at < list.size() && list[at] >= 'a') ++at;
    const std::string_view name = list.substr(begin, at - begin);
    char32_t count = at < list.size() && list[at] <= '9' ? 0 : 1;
    while (at < list.size() && list[at] <= '9') count = 10 * count + static_cast<char32_t>(list[at++] - '0');
    if (name == "Lul") {
      for (char32_t i = 0; i < count; ++i) use(i % 2 == 0 ? "Lu" : "Ll", first + i, first + i);
    } else if (name != "X") {
      use(name, first, first + count - 1);
    }
    first += count;
  }
}

/// The class and the size in bytes of a character.
struct ClassifiedCharacter {
  std::uint8_t bits;
  std::uint8_t size;

  bool is(std::uint8_t mask) const { return (bits & mask) != 0; }
};

/// The class of every code point in two levels: pages of 256 code points, few of them distinct.
class CharacterClasses {
 public:
  /// Created on first use; thread-safe.
  static const CharacterClasses& get();

  std::uint8_t of(char32_t code_point) const {
    return code_point < kAscii ? ascii_[code_point]
                               : pages_[pages_of_[code_point / kPage] * kPage + code_point % kPage];
  }

  /// The character that begins at text[at].
  ClassifiedCharacter at(std::string_view text, std::size_t at) const {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < kAscii) return {ascii_[byte], 1};
    std::size_t end = at;
    const char32_t code_point = next_code_point(text, end);
    return {of(code_point), static_cast<std::uint8_t>(end - at)};
  }

  /// The end of the run from `at` of characters whose class has a bit of `mask`.
  std::size_t skip(std::string_view text, std::size_t at, std::uint8_t mask) const {
    return skip_while(text, at, [mask](ClassifiedCharacter c) { return c.is(mask); });
  }

  template <class Condition>
  std::size_t skip_while(std::string_view text, std::size_t at, Condition condition) const {
    while (at < text.size()) {
      const ClassifiedCharacter c = this->at(text, at);
      if (!condition(c)) break;
      at += c.size;
    }
    return at;
  }

 private:
  static constexpr std::size_t kPage = 256, kAscii = 128;

  CharacterClasses();

  std::array<std::uint8_t, kAscii> ascii_;
  std::array<std::uint16_t, 0x110000 / kPage> pages_of_;
  std::vector<std::uint8_t> pages_;
};

}  // namespace zoo
