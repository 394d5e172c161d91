// The normalization table of a sentencepiece model, used as `tokenizers` uses it (its Precompiled
// normalizer).
#include <bit>
#include <cstring>
#include <optional>

#include "data/base/error.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

namespace zoo {
namespace {

static_assert(std::endian::native == std::endian::little, "the table is little-endian");

// uint32 size of the trie, the trie, and the replacements that its values point to, each closed by a zero
// byte.
class Charsmap {
 public:
  explicit Charsmap(std::string_view map) {
    std::uint32_t size = 0;
    std::memcpy(&size, map.data(), sizeof size);
    units_.resize(size / sizeof(std::uint32_t));
    std::memcpy(units_.data(), map.data() + sizeof size, units_.size() * sizeof(std::uint32_t));
    texts_ = map.substr(sizeof size + size);
  }

  const std::string& texts() const { return texts_; }

  // What a text becomes by the shortest rule that it begins with: the rule stands for the whole text, as it
  // does in `tokenizers`.
  std::optional<std::string_view> replacement(std::string_view text) const {
    std::size_t at = first_child(0);
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte == 0) break;
      at ^= byte;
      const std::uint32_t unit = units_[at];
      if ((unit & 0x800000FFu) != byte) break;
      at = first_child(at);
      if ((unit >> 8 & 1) == 0) continue;
      const std::string_view found = texts_.c_str() + (units_[at] & 0x7FFFFFFFu);
      const bool is_inside_character =
          !found.empty() && (static_cast<unsigned char>(found[0]) & 0xC0) == 0x80;
      return is_inside_character ? std::nullopt : std::optional(found);
    }
    return std::nullopt;
  }

 private:
  std::size_t first_child(std::size_t at) const {
    const std::uint32_t unit = units_[at];
    return at ^ (unit >> 10 << (unit >> 6 & 8));
  }

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

std::size_t count_characters(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) next_code_point(text, at);
  return count;
}

// The new characters stand for the old ones one by one; those too many are added, those missing are removed
// with the last.
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

void normalize(const Charsmap& map, AlignedText& text) {
  constexpr std::size_t kShort =
      6;  // bytes of a cluster from which on its characters are looked at one by one
  TextRewriter out(text);
  const std::string_view old = text.text;
  for (std::size_t at = 0; at < old.size();) {
    const std::size_t end = grapheme_end(old, at);
    const std::string_view cluster = old.substr(at, end - at);
    if (cluster.size() < kShort) {
      if (const auto replacement = map.replacement(cluster)) {
        put(*replacement, count_characters(cluster), out);
        at = end;
        continue;
      }
    }
    while (at < end) {
      const std::size_t begin = at;
      const char32_t c = next_code_point(old, at);
      if (const auto replacement = map.replacement(old.substr(begin, at - begin))) {
        put(*replacement, 1, out);
      } else {
        out.replace(c);
      }
    }
  }
  out.finish();
}

}  // namespace

Normalizer precompiled_normalizer(std::string charsmap, const std::string& what) {
  if (!is_sound_charsmap(charsmap)) throw Error(what, " is damaged: it points outside itself");
  if (charsmap.empty()) return [](AlignedText&) {};
  Charsmap map(charsmap);
  if (invalid_utf8_at(map.texts())) throw Error(what, " is damaged: it holds invalid UTF-8");
  return [map = std::move(map)](AlignedText& text) { normalize(map, text); };
}

}  // namespace zoo
