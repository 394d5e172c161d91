#include "tokenizer/text/charsmap.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "data/base/error.h"
#include "tokenizer/text/unicode.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

// The size of the library's buffer for the rules that match at one position.
constexpr int kMaxNestedRules = 32;

static_assert(std::endian::native == std::endian::little, "the table in the file is little-endian");

// A double-array trie in darts-clone's layout. A unit has its label in bits 0-7, "has a value" in bit 8 and
// the offset of its children in bits 10-31; bit 31 marks a value.
using Units = std::vector<std::uint32_t>;

bool is_value(std::uint32_t unit) { return unit >> 31 != 0; }
bool has_value(std::uint32_t unit) { return (unit >> 8 & 1) != 0; }
std::size_t first_child(const Units& units, std::size_t at) {
  return at ^ (units[at] >> 10 << (units[at] >> 6 & 8));
}

// The most values on a path from a unit on. A cycle counts as too many, and so does a path longer than rules
// are, which would overflow the stack. `known` has the results, -1 where there is none yet.
int deepest_nesting(const Units& units, std::size_t at, std::vector<int>& known, int depth = 0) {
  constexpr int kLongestRule = 1000;
  if (known[at] >= 0) return known[at];
  known[at] = kMaxNestedRules + 1;  // for a path that comes back
  if (depth > kLongestRule) return known[at];
  int below = 0;
  for (unsigned label = 0; label < 256; ++label) {
    const std::size_t child = first_child(units, at) ^ label;
    if (!is_value(units[child]) && (units[child] & 0xFF) == label)
      below = std::max(below, deepest_nesting(units, child, known, depth + 1));
  }
  return known[at] = below + (at != 0 && has_value(units[at]) ? 1 : 0);
}

bool is_valid(const Units& units, std::size_t num_values) {
  if (units.empty() || units.size() % 256 != 0 || is_value(units[0])) return false;
  for (std::size_t at = 0; at < units.size(); ++at) {
    if (is_value(units[at])) continue;
    const std::size_t children = first_child(units, at);
    if ((children | 0xFF) >= units.size()) return false;
    if (at != 0 && has_value(units[at]) && (units[children] & 0x7FFFFFFF) >= num_values) return false;
  }
  std::vector<int> known(units.size(), -1);
  return deepest_nesting(units, 0, known) <= kMaxNestedRules;
}

// The trie and the replacements of a table; nothing if it is damaged.
std::optional<std::pair<Units, std::string_view>> table_in(std::string_view map) {
  std::uint32_t size = 0;
  if (map.size() < sizeof size) return std::nullopt;
  std::memcpy(&size, map.data(), sizeof size);
  map.remove_prefix(sizeof size);
  if (size == 0 || size >= map.size() || size % sizeof(std::uint32_t) != 0 || map.back() != '\0')
    return std::nullopt;
  Units units(size / sizeof(std::uint32_t));
  std::memcpy(units.data(), map.data(), size);
  map.remove_prefix(size);
  if (!is_valid(units, map.size())) return std::nullopt;
  return std::pair(std::move(units), map);
}

// Aligns new characters with old ones; extra ones are added, missing ones are removed with the last.
void put(std::string_view replacement, std::size_t num_old, TextRewriter& out) {
  const std::size_t num_new = count_characters(replacement);
  std::size_t i = 0;
  for (std::size_t at = 0; at < replacement.size(); ++i) {
    const char32_t c = next_code_point(replacement, at);
    if (i >= num_old) {
      out.add(c);
    } else {
      out.replace(c, i + 1 == num_new && num_old > num_new ? num_old - num_new : 0);
    }
  }
  if (num_new == 0) out.skip(num_old);
}

}  // namespace

bool is_valid_charsmap(std::string_view map) { return map.empty() || table_in(map); }

Charsmap::Charsmap(std::string_view map) {
  auto parts = table_in(map);
  if (!parts) throw Error("the normalization table is damaged: it points outside itself");
  units_ = std::move(parts->first);
  texts_ = parts->second;
  if (invalid_utf8_at(texts_)) throw Error("the normalization table is damaged: it holds invalid UTF-8");
  for (unsigned char c = 0; c < 128; ++c) {
    keeps_[c] = true;
    for (unsigned char next = 0; next < 128; ++next) {
      const char text[2] = {static_cast<char>(c), static_cast<char>(next)};
      if (longest({text, 2})) keeps_[c] = false;
    }
  }
}

// The first rule that begins the text, which is the shortest, or the last.
std::optional<Charsmap::Match> Charsmap::match(std::string_view text, bool first) const {
  std::optional<Match> found;
  std::size_t at = first_child(units_, 0);
  for (std::size_t size = 1; size <= text.size() && !(first && found); ++size) {
    const auto byte = static_cast<unsigned char>(text[size - 1]);
    if (byte == 0) break;
    at ^= byte;
    const std::uint32_t unit = units_[at];
    if ((unit & 0x800000FFu) != byte) break;
    at = first_child(units_, at);
    if (!has_value(unit)) continue;
    const std::string_view replacement = texts_.c_str() + (units_[at] & 0x7FFFFFFFu);
    const bool is_inside_character = !replacement.empty() && continues_character(replacement[0]);
    if (!is_inside_character) found = Match{size, replacement};
  }
  return found;
}

void Charsmap::rewrite(AlignedText& text) const {
  constexpr std::size_t kShort = 6;  // bytes; longer clusters are rewritten character by character
  TextRewriter out(text);
  const std::string_view old = text.text;
  const auto is_ascii = [old](std::size_t i) {
    return i == old.size() || static_cast<unsigned char>(old[i]) < 0x80;
  };
  for (std::size_t at = 0; at < old.size();) {
    std::size_t plain = at;
    while (plain < old.size() && is_ascii(plain) && is_ascii(plain + 1) &&
           keeps(static_cast<unsigned char>(old[plain]))) {
      ++plain;
    }
    out.keep(plain - at);
    at = plain;
    if (at == old.size()) break;
    const std::size_t end = grapheme_end(old, at);
    const std::string_view cluster = old.substr(at, end - at);
    if (cluster.size() < kShort) {
      if (const auto rule = shortest(cluster)) {
        put(rule->replacement, count_characters(cluster), out);
        at = end;
        continue;
      }
    }
    while (at < end) {
      const std::size_t begin = at;
      const char32_t c = next_code_point(old, at);
      if (const auto rule = shortest(old.substr(begin, at - begin))) {
        put(rule->replacement, 1, out);
      } else {
        out.replace(c);
      }
    }
  }
  out.finish();
}

}  // namespace zoo
