#include "tokenizer/text/split_patterns.h"

namespace zoo {
namespace {

using Class = CharacterClass;

// 's 't 'm 'd 're 've 'll; with `any_case` as (?i:…), where the long s (U+017F) is an s.
std::size_t contraction_end(std::string_view text, std::size_t start, bool any_case) {
  if (text[start] != '\'') return start;
  const auto letter = [&](std::size_t at) {
    const char c = at < text.size() ? text[at] : '\0';
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  const char first = letter(start + 1), second = letter(start + 2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return start + 2;
  if ((first == 'r' || first == 'v') && second == 'e') return start + 3;
  if (first == 'l' && second == 'l') return start + 3;
  if (any_case && text.substr(start + 1, 2) == "\u017F") return start + 3;
  return start;
}

// \s+(?!\S)|\s+ : white space without its last character, which belongs to the next word; all of it at the
// end of the text or if it is one character. With `lines`, \s*[\r\n]+ comes first: up to the last one.
std::size_t space_end(const CharacterClasses& classes, std::string_view text, std::size_t start, bool lines) {
  std::size_t at = start, last = start, line_end = start;
  while (at < text.size()) {
    const ClassifiedCharacter c = classes.at(text, at);
    if (!c.is(Class::kSpace)) break;
    last = at;
    at += c.size;
    if (c.is(Class::kNewline)) line_end = at;
  }
  if (lines && line_end > start) return line_end;
  return at < text.size() && last > start ? last : at;
}

constexpr std::uint8_t kNoSymbol = Class::kSpace | Class::kLetter | Class::kNumber;

// ` ?[^\s\p{L}\p{N}]+` and then any of `trailing`; `start` if there is none.
std::size_t symbols_end(const CharacterClasses& classes, std::string_view text, std::size_t start,
                        std::string_view trailing) {
  const auto is_symbol = [](ClassifiedCharacter c) { return !c.is(kNoSymbol); };
  const std::size_t body = start + (text[start] == ' ' ? 1 : 0);
  std::size_t end = classes.skip_while(text, body, is_symbol);
  if (end == body) return start;
  while (end < text.size() && trailing.find(text[end]) != trailing.npos) ++end;
  return end;
}

// \p{N}{1,n}
std::size_t number_end(const CharacterClasses& classes, std::string_view text, std::size_t start,
                       std::size_t max_digits) {
  std::size_t digits = 0;
  return classes.skip_while(
      text, start, [&](ClassifiedCharacter c) { return c.is(Class::kNumber) && digits++ < max_digits; });
}

// An o200k word after its first sign: capitals, then small letters. Caseless letters and marks are both.
constexpr std::uint8_t kCapital = Class::kUpper | Class::kCaseless | Class::kMark;
constexpr std::uint8_t kSmall = Class::kLower | Class::kCaseless | Class::kMark;

// [capital]*[small]+ : if no small letter follows the capitals, the word ends after the last character that
// counts as both. `start` if there is none.
std::size_t small_word_end(const CharacterClasses& classes, std::string_view text, std::size_t start) {
  std::size_t last_either = start;
  std::size_t end = start;
  while (end < text.size()) {
    const ClassifiedCharacter c = classes.at(text, end);
    if (!c.is(kCapital)) break;
    end += c.size;
    if (c.is(kSmall)) last_either = end;
  }
  const std::size_t small_end = classes.skip(text, end, kSmall);
  return small_end > end ? small_end : last_either;
}

// [capital]+[small]*, `start` if there is none.
std::size_t capital_word_end(const CharacterClasses& classes, std::string_view text, std::size_t start) {
  const std::size_t end = classes.skip(text, start, kCapital);
  return end == start ? start : classes.skip(text, end, kSmall);
}

using WordEnd = std::size_t (*)(const CharacterClasses&, std::string_view, std::size_t);

// [^\r\n\p{L}\p{N}]? before a word and its contraction: with that sign or without it, else `start`.
std::size_t signed_word_end(const CharacterClasses& classes, std::string_view text, std::size_t start,
                            WordEnd word_end) {
  const ClassifiedCharacter first = classes.at(text, start);
  std::size_t body = start, end = start;
  if (!first.is(Class::kNewline | Class::kLetter | Class::kNumber)) {
    body = start + first.size;
    end = word_end(classes, text, body);
  }
  if (end == body) {
    body = start;
    end = word_end(classes, text, body);
  }
  if (end == body) return start;
  return end < text.size() ? contraction_end(text, end, /*any_case=*/true) : end;
}

// The first spelling of each pattern is written to files; the others are tiktoken's, which are
// equivalent (that of its cl100k since 0.9 is not: a line end with spaces at the end of a text is one word).
constexpr std::pair<SplitPattern, std::string_view> kSpellings[] = {
    {SplitPattern::gpt2, R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {SplitPattern::gpt2,
     R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)"},
    {SplitPattern::gpt2, R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {SplitPattern::cl100k,
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {SplitPattern::cl100k,
     R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"},
    {SplitPattern::qwen2,
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {SplitPattern::o200k,
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
};

}  // namespace

std::size_t gpt2_word_end(const CharacterClasses& classes, std::string_view text, std::size_t start) {
  if (const std::size_t end = contraction_end(text, start, /*any_case=*/false); end > start) return end;
  // A word, number or run of signs, with the space before it.
  std::size_t body = start + (text[start] == ' ' && start + 1 < text.size() ? 1 : 0);
  ClassifiedCharacter first = classes.at(text, body);
  if (first.is(Class::kSpace)) return space_end(classes, text, start, /*lines=*/false);
  body += first.size;
  for (const std::uint8_t kind : {Class::kLetter, Class::kNumber})
    if (first.is(kind)) return classes.skip(text, body, kind);
  return classes.skip_while(text, body, [](ClassifiedCharacter c) { return !c.is(kNoSymbol); });
}

std::size_t cl100k_word_end(const CharacterClasses& classes, std::string_view text, std::size_t start,
                            std::size_t max_digits) {
  if (const std::size_t end = contraction_end(text, start, /*any_case=*/true); end > start) return end;
  const ClassifiedCharacter first = classes.at(text, start);
  if (first.is(Class::kNumber)) return number_end(classes, text, start, max_digits);
  if (!first.is(Class::kNewline)) {
    const std::size_t body = start + first.size;
    const std::size_t end = classes.skip(text, body, Class::kLetter);
    if (end > body || first.is(Class::kLetter)) return end;
  }
  if (const std::size_t end = symbols_end(classes, text, start, "\r\n"); end > start) return end;
  return space_end(classes, text, start, /*lines=*/true);
}

std::size_t o200k_word_end(const CharacterClasses& classes, std::string_view text, std::size_t start) {
  for (const WordEnd word_end : {small_word_end, capital_word_end})
    if (const std::size_t end = signed_word_end(classes, text, start, word_end); end > start) return end;
  if (const std::size_t end = number_end(classes, text, start, 3); end > start) return end;
  if (const std::size_t end = symbols_end(classes, text, start, "\r\n/"); end > start) return end;
  return space_end(classes, text, start, /*lines=*/true);
}

std::optional<SplitPattern> split_pattern_named(std::string_view name) {
  if (name == "gpt2") return SplitPattern::gpt2;
  if (name == "cl100k") return SplitPattern::cl100k;
  if (name == "qwen2") return SplitPattern::qwen2;
  if (name == "o200k") return SplitPattern::o200k;
  return std::nullopt;
}

std::optional<SplitPattern> split_pattern_of(std::string_view expression) {
  for (const auto& [pattern, spelling] : kSpellings)
    if (spelling == expression) return pattern;
  return std::nullopt;
}

std::string_view expression_of(SplitPattern pattern) {
  for (const auto& [known, spelling] : kSpellings)
    if (known == pattern) return spelling;
  return "";
}

}  // namespace zoo
