#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/text/aligned_text.h"

namespace zoo {

/// Checks that the normalization table of a sentencepiece model has no offsets beyond its end and fits the
/// library's buffers: uint32 size of a double-array trie (darts-clone), the trie, zero-terminated
/// replacements that its values point to. An empty table is valid.
bool is_valid_charsmap(std::string_view map);

/// The rewriting rules of such a table.
class Charsmap {
 public:
  struct Match {
    std::size_t size;  // bytes of the text that the rule matches
    std::string_view replacement;
  };

  /// Throws Error if the table is empty, damaged or not UTF-8.
  explicit Charsmap(std::string_view map);

  /// The shortest matching rule; `tokenizers` replaces the complete text by its replacement.
  std::optional<Match> shortest(std::string_view text) const { return match(text, /*first=*/true); }
  /// The longest matching rule, which the library applies.
  std::optional<Match> longest(std::string_view text) const { return match(text, /*first=*/false); }
  /// Rewrites a text as the Precompiled normalizer of `tokenizers` does.
  void rewrite(AlignedText& text) const;
  /// True if an ASCII character stays unchanged before every ASCII character.
  bool keeps(unsigned char c) const { return keeps_[c]; }

 private:
  std::optional<Match> match(std::string_view text, bool first) const;

  std::vector<std::uint32_t> units_;
  std::string texts_;
  bool keeps_[128] = {};
};

}  // namespace zoo
