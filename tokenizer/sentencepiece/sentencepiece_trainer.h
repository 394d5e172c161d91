#pragma once

/// @file
/// Use:
///
///     const std::array<std::string_view, 1> texts{text};
///     zoo::write_file("spiece.model", zoo::train_sentencepiece(texts, {.vocab_size = 2000}));

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// Options for learning a vocabulary with sentencepiece (Kudo and Richardson, 2018). The special tokens
/// are T5's: <pad> 0, </s> 1, <unk> 2.
struct SentencePieceOptions {
  enum class Model {
    unigram,  // Kudo, 2018
    bpe,      // Sennrich et al., 2016
  };
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

/// Learns from the lines of `texts`, which are UTF-8; returns the bytes of the model. Throws Error with the
/// cause.
std::string train_sentencepiece(std::span<const std::string_view> texts, const SentencePieceOptions& options);

}  // namespace zoo
