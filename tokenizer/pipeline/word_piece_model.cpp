#include "tokenizer/pipeline/word_piece_model.h"

#include "data/base/error.h"
#include "tokenizer/text/utf8.h"

namespace zoo {

WordPieceModel::WordPieceModel(const std::vector<VocabularyEntry>& vocabulary, WordPieceOptions options)
    : options_(std::move(options)),
      trie_(trie_of(vocabulary)),
      continuation_(trie_.walk(ByteTrie::kRoot, options_.continuing_subword_prefix)),
      unk_id_(trie_.find(options_.unk_token)) {}

void WordPieceModel::encode(std::string_view word, TokenIds& ids, std::vector<ByteRange>* ranges) const {
  const std::size_t num_ids = ids.size();
  const bool fits = word.size() <= options_.max_input_chars_per_word ||
                    count_characters(word) <= options_.max_input_chars_per_word;
  if (fits && append_pieces(word, ids, ranges)) return;
  ids.resize(num_ids);
  if (!unk_id_)
    throw Error("the word '", excerpt(word, 100), "' cannot be built from the vocabulary, which has no ",
                options_.unk_token);
  ids.push_back(*unk_id_);
  if (ranges == nullptr) return;
  ranges->resize(num_ids);
  ranges->push_back({0, static_cast<std::uint32_t>(word.size())});
}

bool WordPieceModel::append_pieces(std::string_view word, TokenIds& ids,
                                   std::vector<ByteRange>* ranges) const {
  ByteTrie::Node start = ByteTrie::kRoot;
  for (std::size_t begin = 0; begin < word.size(); start = continuation_) {
    const ByteTrie::Match match = trie_.longest(start, word.substr(begin));
    if (match.id == ByteTrie::kNoId) return false;
    ids.push_back(match.id);
    const std::size_t end = begin + match.size;
    if (ranges != nullptr)
      ranges->push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)});
    begin = end;
  }
  return true;
}

}  // namespace zoo
