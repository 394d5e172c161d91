#include "tokenizer/jinja/python_text.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include "tokenizer/text/utf8.h"

namespace zoo::chat {
namespace {

icu::UnicodeString icu_text(std::string_view text) {
  return icu::UnicodeString::fromUTF8({text.data(), static_cast<std::int32_t>(text.size())});
}

std::string from_icu(const icu::UnicodeString& text) {
  std::string result;
  return text.toUTF8String(result);
}

bool is_line_end(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

std::string reversed(std::string_view text) { return {text.rbegin(), text.rend()}; }

std::vector<std::string> split_at(std::string_view text, std::string_view separator, std::int64_t most) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (; most != 0; --most) {
    const std::size_t at = find_text(text, separator, begin);
    if (at == std::string_view::npos) break;
    parts.emplace_back(text.substr(begin, at - begin));
    begin = at + separator.size();
  }
  parts.emplace_back(text.substr(begin));
  return parts;
}

std::vector<std::u32string> split_at_space(std::u32string_view text, std::int64_t most) {
  std::vector<std::u32string> parts;
  for (auto at = text.begin();;) {
    at = std::find_if_not(at, text.end(), is_python_space);
    if (at == text.end()) return parts;
    const auto end = most-- == 0 ? text.end() : std::find_if(at, text.end(), is_python_space);
    parts.emplace_back(at, end);
    at = end;
  }
}

}  // namespace

std::u32string characters_of(std::string_view text) {
  std::u32string characters;
  for (std::size_t at = 0; at < text.size();) characters.push_back(next_code_point(text, at));
  return characters;
}

bool is_python_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

std::string to_upper(std::string_view text) {
  return from_icu(icu_text(text).toUpper(icu::Locale::getRoot()));
}

std::string to_lower(std::string_view text) {
  return from_icu(icu_text(text).toLower(icu::Locale::getRoot()));
}

std::string capitalized(std::string_view text) {
  if (text.empty()) return "";
  const std::size_t first = character_end(text, 0);
  return from_icu(icu_text(text.substr(0, first)).toTitle(nullptr, icu::Locale::getRoot())) +
         to_lower(text.substr(first));
}

std::string title_cased(std::string_view text) {
  std::string result;
  bool in_word = false;
  for (const char32_t c : characters_of(text)) {
    const std::string character = utf8_of(c);
    result += in_word ? to_lower(character) : capitalized(character);
    in_word = u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_CASED) != 0;
  }
  return result;
}

std::string titled(std::string_view text) {
  constexpr std::u32string_view kBetweenWords = U"-({[<";
  std::string result, word;
  const auto finish = [&] {
    const std::size_t first = word.empty() ? 0 : character_end(word, 0);
    result +=
        to_upper(std::string_view(word).substr(0, first)) + to_lower(std::string_view(word).substr(first));
    word.clear();
  };
  for (const char32_t c : characters_of(text)) {
    if (is_python_space(c) || kBetweenWords.find(c) != std::u32string_view::npos) {
      finish();
      result += utf8_of(c);
    } else {
      word += utf8_of(c);
    }
  }
  finish();
  return result;
}

std::size_t find_text(std::string_view text, std::string_view part, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (part.empty()) return from;
  // std::string_view::find() takes time proportional to the product of the sizes.
  const void* found = ::memmem(text.data() + from, text.size() - from, part.data(), part.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

std::size_t find_last_text(std::string_view text, std::string_view part) {
  const std::size_t at = find_text(reversed(text), reversed(part));
  return at == std::string_view::npos ? at : text.size() - at - part.size();
}

std::string stripped(std::string_view text, Side side, const std::string* set) {
  const std::u32string characters = characters_of(text);
  std::u32string removed = set ? characters_of(*set) : std::u32string();
  std::ranges::sort(removed);
  const auto goes = [&](char32_t c) {
    return set ? std::binary_search(removed.begin(), removed.end(), c) : is_python_space(c);
  };
  auto begin = characters.begin(), end = characters.end();
  while (side != Side::right && begin != end && goes(*begin)) ++begin;
  while (side != Side::left && begin != end && goes(end[-1])) --end;
  return utf8_of({begin, end});
}

std::vector<std::string> split(std::string_view text, const std::string* separator, std::int64_t most,
                               bool from_right) {
  if (separator && separator->empty()) throw Fault("split() has an empty separator");
  std::vector<std::string> parts;
  if (separator && !from_right) return split_at(text, *separator, most);
  if (separator) {
    for (const std::string& part : split_at(reversed(text), reversed(*separator), most))
      parts.push_back(reversed(part));
  } else {
    std::u32string characters = characters_of(text);
    if (from_right) std::ranges::reverse(characters);
    for (std::u32string& part : split_at_space(characters, most)) {
      if (from_right) std::ranges::reverse(part);
      parts.push_back(utf8_of(part));
    }
  }
  if (from_right) std::ranges::reverse(parts);
  return parts;
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    std::size_t end = at;
    char32_t c = 0;
    while (at < text.size() && !is_line_end(c = next_code_point(text, at))) end = at;
    if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.emplace_back(text.substr(begin, end - begin));
  }
  return lines;
}

std::string replaced(std::string_view text, std::string_view old, std::string_view by, std::int64_t most,
                     Heap& heap) {
  std::string result;
  std::size_t at = 0;
  for (; most != 0; --most) {
    const std::size_t found = find_text(text, old, at);
    if (found == std::string_view::npos) break;
    heap.spend(by.size() + 1);
    // An empty `old` matches before each character and at the end.
    std::size_t next = found + old.size();
    result += text.substr(at, found - at);
    result += by;
    if (old.empty()) {
      if (found == text.size()) return result;
      next_code_point(text, next);
      result += text.substr(found, next - found);
    }
    at = next;
  }
  return result += text.substr(at);
}

std::string escaped(const Value& value, Heap& heap) {
  constexpr std::pair<const char*, const char*> kEntities[] = {
      {"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"'", "&#39;"}, {"\"", "&#34;"}};
  std::string text = str(value, heap);
  if (as<SafeText>(value)) return text;
  heap.spend(std::size(kEntities) * text.size());
  for (const auto& [letter, entity] : kEntities) text = replaced(text, letter, entity, -1, heap);
  return text;
}

}  // namespace zoo::chat
