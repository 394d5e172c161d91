#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/base/error.h"
#include "tokenizer/pipeline/byte_trie.h"
#include "tokenizer/text/utf8.h"

namespace zoo {

/// Turns a word of a text (a pre-token) into ids: the model of a tokenizer.json. Immutable.
class TokenModel {
 public:
  virtual ~TokenModel() = default;

  /// Appends the ids of a UTF-8 word. `ranges`, if given, is as long as `ids` and receives the bytes of the
  /// word that each id covers. Throws Error if the word cannot be encoded.
  virtual void encode(std::string_view word, TokenIds& ids, std::vector<ByteRange>* ranges) const = 0;
};

struct VocabularyEntry {
  std::string text;
  TokenId id;
};

inline ByteTrie trie_of(const std::vector<VocabularyEntry>& vocabulary) {
  std::vector<ByteTrie::Entry> entries;
  for (const VocabularyEntry& entry : vocabulary) entries.push_back({entry.text, entry.id});
  return ByteTrie(entries);
}

using MergePairs = std::vector<std::pair<std::string, std::string>>;

/// A vocabulary of complete words; others become the unknown token.
class WordLevelModel final : public TokenModel {
 public:
  WordLevelModel(const std::vector<VocabularyEntry>& vocabulary, std::string unk_token)
      : trie_(trie_of(vocabulary)), unk_token_(std::move(unk_token)) {}

  void encode(std::string_view word, TokenIds& ids, std::vector<ByteRange>* ranges) const override {
    std::optional<TokenId> id = trie_.find(word);
    if (!id) id = trie_.find(unk_token_);
    if (!id) throw Error("the word '", word, "' is not in the vocabulary, and neither is ", unk_token_);
    ids.push_back(*id);
    if (ranges != nullptr) ranges->push_back({0, static_cast<std::uint32_t>(word.size())});
  }

 private:
  ByteTrie trie_;
  std::string unk_token_;
};

}  // namespace zoo
