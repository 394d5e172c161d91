#pragma once

#include <array>
#include <optional>

#include "tokenizer/pipeline/token_model.h"

namespace zoo {

struct UnigramOptions {
  std::optional<TokenId> unk_id;
  bool byte_fallback = false;  // unknown characters become <0xC3> <0xA9> if all of those are pieces
};

struct UnigramPiece {
  std::string text;
  double score;  // log probability
};

/// A unigram language model (Kudo, 2018): the most probable segmentation of a word into pieces. An unknown
/// character scores ten below the worst piece; adjacent ones become one unknown token.
class UnigramModel final : public TokenModel {
 public:
  /// pieces[id]. Throws Error if unk_id is not one of them.
  UnigramModel(const std::vector<UnigramPiece>& pieces, const UnigramOptions& options);

  void encode(std::string_view word, TokenIds& ids, std::vector<ByteRange>* ranges) const override;

 private:
  void encode_uncached(std::string_view word, TokenIds& ids, std::vector<ByteRange>* ranges) const;
  void append_unknown(std::string_view text, ByteRange range, TokenIds& ids,
                      std::vector<ByteRange>* ranges) const;

  ByteTrie trie_;
  std::vector<double> scores_;
  double unknown_score_ = 0;
  std::optional<TokenId> unk_id_;
  bool byte_fallback_;
  std::uint64_t cache_key_;
  std::array<TokenId, 256> bytes_;  // ids of "<0x00>" and so on
};

}  // namespace zoo
