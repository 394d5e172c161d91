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
class Trie {
 public:
  explicit Trie(std::string_view bytes) : units_(bytes.size() / sizeof(std::uint32_t)) {
    if (!units_.empty()) std::memcpy(units_.data(), bytes.data(), units_.size() * sizeof(std::uint32_t));
  }

  bool is_valid(std::size_t num_values) const {
    if (units_.empty() || units_.size() % 256 != 0 || is_value(0)) return false;
    for (std::size_t at = 0; at < units_.size(); ++at) {
      if (is_value(at)) continue;
      const std::size_t children = first_child(at);
      if ((children | 0xFF) >= units_.size()) return false;
      if (at != 0 && has_value(at) && (units_[children] & 0x7FFFFFFF) >= num_values) return false;
    }
    return deepest_nesting() <= kMaxNestedRules;
  }

 private:
  bool is_value(std::size_t at) const { return units_[at] >> 31 != 0; }
  bool has_value(std::size_t at) const { return (units_[at] >> 8 & 1) != 0; }
  std::size_t first_child(std::size_t at) const {
    const std::uint32_t unit = units_[at];
    return at ^ (unit >> 10 << (unit >> 6 & 8));
  }

  // The most values on a path from the root, by depth-first search; a cycle counts as too many.
  int deepest_nesting() const {
    constexpr int kUnseen = -1, kOpen = -2;
    struct Visit {
      std::size_t at = 0;
      unsigned label = 0;
      int below = 0;
    };
    std::vector<int> nesting(units_.size(), kUnseen);
    std::vector<Visit> path(1);
    nesting[0] = kOpen;
    while (true) {
      Visit& here = path.back();
      if (here.label == 256) {
        const Visit done = here;
        nesting[done.at] = done.below + (has_value(done.at) ? 1 : 0);
        path.pop_back();
        if (path.empty()) return done.below;
        path.back().below = std::max(path.back().below, nesting[done.at]);
        continue;
      }
      const unsigned label = here.label++;
      const std::size_t child = first_child(here.at) ^ label;
      if (is_value(child) || (units_[child] & 0xFF) != label) continue;
      if (nesting[child] == kOpen) return kMaxNestedRules + 1;
      if (nesting[child] == kUnseen) {
        nesting[child] = kOpen;
        path.push_back({child});
      } else {
        here.below = std::max(here.below, nesting[child]);
      }
    }
  }

  std::vector<std::uint32_t> units_;
};

// Aligns new characters with old ones one by one; extra ones are added, missing ones are removed with the
// last.
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

bool is_valid_charsmap(std::string_view map) {
  if (map.empty()) return true;
  std::uint32_t trie_size = 0;
  if (map.size() < sizeof trie_size) return false;
  std::memcpy(&trie_size, map.data(), sizeof trie_size);
  map.remove_prefix(sizeof trie_size);
  if (trie_size >= map.size() || trie_size % sizeof(std::uint32_t) != 0 || map.back() != '\0') return false;
  return Trie(map.substr(0, trie_size)).is_valid(map.size() - trie_size);
}

Charsmap::Charsmap(std::string_view map) {
  if (map.empty() || !is_valid_charsmap(map))
    throw Error("the normalization table is damaged: it points outside itself");
  std::uint32_t size = 0;
  std::memcpy(&size, map.data(), sizeof size);
  units_.resize(size / sizeof(std::uint32_t));
  std::memcpy(units_.data(), map.data() + sizeof size, units_.size() * sizeof(std::uint32_t));
  texts_ = map.substr(sizeof size + size);
  if (invalid_utf8_at(texts_)) throw Error("the normalization table is damaged: it holds invalid UTF-8");
  for (unsigned char c = 0; c < 128; ++c) {
    keeps_[c] = true;
    for (unsigned char next = 0; next < 128; ++next) {
      const char text[2] = {static_cast<char>(c), static_cast<char>(next)};
      if (longest({text, 2})) keeps_[c] = false;
    }
  }
}

// Calls visit(size, replacement) for each rule that matches at the beginning of the text, shortest first,
// while it returns true.
template <class Visit> void Charsmap::visit_rules(std::string_view text, Visit visit) const {
  std::size_t at = first_child(0);
  for (std::size_t size = 1; size <= text.size(); ++size) {
    const auto byte = static_cast<unsigned char>(text[size - 1]);
    if (byte == 0) return;
    at ^= byte;
    const std::uint32_t unit = units_[at];
    if ((unit & 0x800000FFu) != byte) return;
    at = first_child(at);
    if ((unit >> 8 & 1) == 0) continue;
    const std::string_view found = texts_.c_str() + (units_[at] & 0x7FFFFFFFu);
    const bool is_inside_character = !found.empty() && continues_character(found[0]);
    if (!is_inside_character && !visit(size, found)) return;
  }
}

std::optional<std::string_view> Charsmap::shortest(std::string_view text) const {
  std::optional<std::string_view> result;
  visit_rules(text, [&](std::size_t, std::string_view replacement) {
    result = replacement;
    return false;
  });
  return result;
}

std::optional<Charsmap::Match> Charsmap::longest(std::string_view text) const {
  std::optional<Match> result;
  visit_rules(text, [&](std::size_t size, std::string_view replacement) {
    result = Match{size, replacement};
    return true;
  });
  return result;
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
      if (const auto replacement = shortest(cluster)) {
        put(*replacement, count_characters(cluster), out);
        at = end;
        continue;
      }
    }
    while (at < end) {
      const std::size_t begin = at;
      const char32_t c = next_code_point(old, at);
      if (const auto replacement = shortest(old.substr(begin, at - begin))) {
        put(*replacement, 1, out);
      } else {
        out.replace(c);
      }
    }
  }
  out.finish();
}

}  // namespace zoo
