#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/text/aligned_text.h"

namespace zoo {

/// Whether the normalization table of a sentencepiece model stays inside itself, and inside the library's
/// buffers: uint32 size of a double-array trie as darts-clone writes it, the trie, and the replacements that
/// its values point to, each closed by a zero byte. No table at all is sound.
bool is_sound_charsmap(std::string_view map);

/// The rules of such a table: texts and what they become.
class Charsmap {
 public:
  struct Match {
    std::size_t size;  // bytes of the text that the rule is for
    std::string_view replacement;
  };

  /// Throws Error if the table is empty, not sound, or not UTF-8.
  explicit Charsmap(std::string_view map);

  /// What a text becomes by the shortest rule that it begins with: the rule stands for the whole text, as it
  /// does in `tokenizers`.
  std::optional<std::string_view> shortest(std::string_view text) const;
  /// The longest rule that the text begins with, as the library uses it.
  std::optional<Match> longest(std::string_view text) const;
  /// Rewrites a text as the Precompiled normalizer of `tokenizers` does.
  void rewrite(AlignedText& text) const;
  /// Whether an ASCII character stays as it is, whatever ASCII follows.
  bool keeps(unsigned char c) const { return keeps_[c]; }

 private:
  std::size_t first_child(std::size_t at) const {
    const std::uint32_t unit = units_[at];
    return at ^ (unit >> 10 << (unit >> 6 & 8));
  }
  template <class Visit>
  void visit_rules(std::string_view text, Visit visit) const;

  std::vector<std::uint32_t> units_;
  std::string texts_;
  bool keeps_[128] = {};
};

}  // namespace zoo
