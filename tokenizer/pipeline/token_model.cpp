#include "tokenizer/pipeline/token_model.h"

#include <optional>

#include "data/base/error.h"

namespace zoo {
namespace {

class WordLevelModel final : public TokenModel {
 public:
  WordLevelModel(const std::vector<VocabularyEntry>& vocabulary, const std::string& unk_token)
      : trie_(trie_of(vocabulary)), unk_token_(unk_token) {}

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

}  // namespace

ByteTrie trie_of(const std::vector<VocabularyEntry>& vocabulary) {
  std::vector<ByteTrie::Entry> entries;
  for (const VocabularyEntry& entry : vocabulary) entries.push_back({entry.text, entry.id});
  return ByteTrie(entries);
}

std::unique_ptr<TokenModel> make_word_level_model(const std::vector<VocabularyEntry>& vocabulary,
                                                  const std::string& unk_token) {
  return std::make_unique<WordLevelModel>(vocabulary, unk_token);
}

}  // namespace zoo
