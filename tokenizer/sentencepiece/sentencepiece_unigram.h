#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/pipeline/byte_trie.h"
#include "tokenizer/sentencepiece/sentencepiece_file.h"
#include "tokenizer/text/charsmap.h"

namespace zoo {

/// The library's ids, computed faster, for the most common models: unigram (Kudo, 2018) without user-defined
/// symbols. Immutable; safe to share between threads.
class SentencePieceUnigram {
 public:
  static bool can_run(const SentencePieceFile& file);

  /// The file must fulfil can_run.
  explicit SentencePieceUnigram(const SentencePieceFile& file);

  /// Appends the ids of a UTF-8 text.
  void encode(std::string_view text, TokenIds& ids) const;

 private:
  std::string_view rewritten_at(std::string_view text, std::size_t& at) const;
  void normalize(std::string_view text, std::string& normalized) const;

  ByteTrie trie_;
  std::vector<float> scores_;
  float unknown_score_ = 0;
  TokenId unk_id_ = 0;
  TokenIds bytes_;  // ids of "<0x00>" and so on; empty without byte fallback
  std::optional<Charsmap> charsmap_;
  bool adds_prefix_ = true, removes_extra_spaces_ = true;
};

}  // namespace zoo
