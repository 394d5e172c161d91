#pragma once

#include <optional>

#include "tokenizer/pipeline/token_model.h"

namespace zoo {

struct WordPieceOptions {
  std::string unk_token = "[UNK]";
  std::string continuing_subword_prefix = "##";
  std::size_t max_input_chars_per_word = 100;  // longer words become unknown
};

/// WordPiece (Schuster and Nakajima, 2012; Devlin et al., 2019): greedy. Matches the longest entry at the
/// beginning of the word, then the longest continuation, and so on; else the word is one unknown token.
class WordPieceModel final : public TokenModel {
 public:
  WordPieceModel(const std::vector<VocabularyEntry>& vocabulary, WordPieceOptions options);

  void encode(std::string_view word, TokenIds& ids, std::vector<ByteRange>* ranges) const override;

 private:
  bool append_pieces(std::string_view word, TokenIds& ids, std::vector<ByteRange>* ranges) const;

  WordPieceOptions options_;
  ByteTrie trie_;
  ByteTrie::Node continuation_;  // the node after "##"; kNoNode if no entry continues a word
  std::optional<TokenId> unk_id_;
};

}  // namespace zoo
