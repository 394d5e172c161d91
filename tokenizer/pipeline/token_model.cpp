#include "tokenizer/pipeline/token_model.h"

#include <algorithm>
#include <optional>

#include "data/base/error.h"

namespace zoo {
namespace {

class WordLevelModel final : public TokenModel {
 public:
  WordLevelModel(const std::vector<VocabularyEntry>& vocabulary, const std::string& unk_token)
      : trie_(trie_of(vocabulary)), unk_token_(unk_token) {}

  void encode(std::string_view word, std::vector<TokenId>& ids,
              std::vector<ByteRange>* ranges) const override {
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

std::vector<BpeToken> tokens_of(const std::vector<VocabularyEntry>& vocabulary) {
  std::vector<BpeToken> tokens;
  for (const VocabularyEntry& entry : vocabulary) tokens.push_back({entry.text, entry.id});
  return tokens;
}

std::vector<BpeMerge> merges_of(const MergePairs& pairs) {
  std::vector<BpeMerge> merges;
  for (const auto& [left, right] : pairs) merges.push_back({left, right});
  return merges;
}

class BpeTokenModel final : public TokenModel {
 public:
  BpeTokenModel(const std::vector<VocabularyEntry>& vocabulary, const MergePairs& merges,
                const BpeOptions& options)
      : model_(tokens_of(vocabulary), merges_of(merges), options) {}

  void encode(std::string_view word, std::vector<TokenId>& ids,
              std::vector<ByteRange>* ranges) const override {
    if (ranges == nullptr) return model_.encode(word, ids);
    static thread_local std::vector<BpeSymbol> symbols;
    symbols.clear();
    model_.encode(word, symbols);
    // With byte fallback, the bytes of a prefix or suffix are symbols too, though they are not in the word.
    const auto size = static_cast<std::uint32_t>(word.size());
    std::uint32_t begin = 0;
    for (const BpeSymbol& symbol : symbols) {
      const std::uint32_t end = std::min(begin + symbol.length, size);
      ids.push_back(symbol.id);
      ranges->push_back({begin, end});
      begin = end;
    }
  }

 private:
  BpeModel model_;
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

std::unique_ptr<TokenModel> make_bpe_model(const std::vector<VocabularyEntry>& vocabulary,
                                           const MergePairs& merges, const BpeOptions& options) {
  return std::make_unique<BpeTokenModel>(vocabulary, merges, options);
}

}  // namespace zoo
