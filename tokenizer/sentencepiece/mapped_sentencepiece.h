#pragma once

#include <map>
#include <unordered_map>

#include "tokenizer/sentencepiece/sentencepiece_tokenizer.h"

namespace zoo {

/// Vocabulary and special tokens of a MappedSentencePiece.
struct MappedVocabulary {
  std::unordered_map<std::string, TokenId> ids;  // of pieces and special tokens
  std::vector<std::string> special;              // split the text before the model runs; skipped by decode
  std::map<SpecialToken, std::string> roles;     // unk must be one
  std::vector<std::string> before, after;        // special tokens around each text
  /// A text may begin with a code between ">>" and "<<", such as a language, which is one token (Marian).
  bool reads_codes = false;
};

/// A sentencepiece model whose pieces have the ids of a separate vocab.json: Marian and M2M-100, as in
/// transformers without sacremoses.
class MappedSentencePiece final : public Tokenizer {
 public:
  /// `files` are the names and contents that save() writes. Throws Error naming `what` and a token of the
  /// template, or the unknown token, that the vocabulary lacks.
  MappedSentencePiece(SentencePieceTokenizer model, MappedVocabulary vocabulary,
                      std::map<std::string, std::string> files, const std::string& what);

  std::string_view kind() const override { return "sentencepiece"; }
  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(texts_.size()); }
  TokenIds text_ids(std::string_view text) const override;
  std::string decode(std::span<const TokenId> ids) const override { return decode(ids, true); }
  std::string decode_with_special_tokens(std::span<const TokenId> ids) const override {
    return decode(ids, false);
  }
  std::string token_text(TokenId id) const override;
  std::optional<TokenId> role_id(SpecialToken role) const override;
  void save(const std::filesystem::path& directory) const override;

 protected:
  const EncodingTemplate& encoding_template() const override { return template_; }

 private:
  std::string decode(std::span<const TokenId> ids, bool skips_special) const;
  void encode_part(std::string_view text, TokenIds& ids) const;
  const std::string* special_at(std::string_view text) const;
  TokenId id_of(const std::string& token) const;

  SentencePieceTokenizer model_;
  MappedVocabulary vocabulary_;
  std::map<std::string, std::string> files_;
  std::vector<std::string> texts_;  // by id; "" for unused ids
  std::vector<bool> is_special_;
  TokenId unk_id_ = 0;
  EncodingTemplate template_;
};

}  // namespace zoo
