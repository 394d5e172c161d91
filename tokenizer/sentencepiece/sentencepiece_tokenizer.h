#pragma once

/// @file
/// Use:
///
///     const auto tokenizer = zoo::SentencePieceTokenizer::train(text, {.vocab_size = 2000});
///     const zoo::TokenIds ids = tokenizer.encode("In the beginning");
///     tokenizer.save("kjv-sentencepiece");  // an existing directory

#include "tokenizer/tokenizer.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace zoo {

class SentencePieceUnigram;

/// Options of sentencepiece (Kudo and Richardson, 2018). T5's special tokens: <pad> 0, </s> 1, <unk> 2.
struct SentencePieceOptions {
  enum class Model { unigram, bpe };  // Kudo, 2018; Sennrich et al., 2016
  Model model = Model::unigram;
  /// Special tokens and byte tokens included.
  std::int64_t vocab_size = 8000;
  /// Unknown characters become their UTF-8 bytes instead of `<unk>`.
  bool byte_fallback = false;
  /// The share of the text's characters that get ids, 0.98 to 1.
  double character_coverage = 0.9995;
  /// "nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf" or "identity".
  std::string normalization = "nmt_nfkc";
  /// Collapses runs of spaces and removes those at the ends.
  bool remove_extra_whitespaces = true;
  /// Each is always one token. "\n" here is the only way to keep line ends (with "identity").
  std::vector<std::string> user_defined_symbols;
  /// Affects the result: the order of sums over threads changes their rounding.
  int num_threads = 16;
};

/// Learns from the lines of a UTF-8 text; returns the model's bytes. Throws Error with the cause.
std::string train_sentencepiece(std::string_view text, const SentencePieceOptions& options);

/// Google's sentencepiece library: unigram, BPE, word and character models. Ids and decoded text are the
/// library's. A character without an id becomes `<unk>`; the model's normalization may change the text.
class SentencePieceTokenizer final : public Tokenizer {
 public:
  /// Throws Error naming the file if the model is damaged.
  static SentencePieceTokenizer load(const std::filesystem::path& file);

  /// Learns from the lines of a text. Throws Error if there is none, or an option is wrong for them.
  static SentencePieceTokenizer train(std::string_view text, const SentencePieceOptions& options);

  std::string_view kind() const override { return "sentencepiece"; }
  std::int64_t vocab_size() const override;
  std::optional<TokenId> role_id(SpecialToken role) const override;
  /// Writes spiece.model, byte for byte as it was read or trained. Adds a tokenizer_config.json that names
  /// T5Tokenizer if that class gives the same ids: unigram, nmt_nfkc, no byte fallback.
  void save(const std::filesystem::path& directory) const override;

  /// The text's pieces as the library normalises them; text without a piece is returned unchanged.
  std::vector<std::string> pieces(std::string_view text) const;

  /// The piece of an id, with U+2581 for a space.
  std::string token_text(TokenId id) const override;

 protected:
  /// Takes at most 64 MiB of text at once.
  Encoding tokenize(std::string_view text, const EncodeOptions& options, bool is_second) const override;
  std::string text_of(std::span<const TokenId> ids, bool skips_special) const override;

 private:
  SentencePieceTokenizer(std::string model, const std::string& what);

  std::string model_;
  bool is_like_t5_ = false;
  std::shared_ptr<sentencepiece::SentencePieceProcessor> processor_;
  std::shared_ptr<const SentencePieceUnigram> unigram_;  // replaces the library if it can, twice as fast
};

}  // namespace zoo
