#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

ByteTrie trie_of(const std::vector<VocabularyEntry>& vocabulary);

using MergePairs = std::vector<std::pair<std::string, std::string>>;

/// A vocabulary of complete words; others become the unknown token.
std::unique_ptr<TokenModel> make_word_level_model(const std::vector<VocabularyEntry>& vocabulary,
                                                  const std::string& unk_token);

}  // namespace zoo
