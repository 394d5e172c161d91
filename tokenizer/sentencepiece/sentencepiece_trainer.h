#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// How sentencepiece (Kudo and Richardson, 2018) learns a vocabulary. The special ids are T5's; an id of -1
/// leaves that token out.
struct SentencePieceOptions {
  enum class Model {
    unigram,  // Kudo, 2018
    bpe,      // Sennrich et al., 2016
  };
  Model model = Model::unigram;
  /// With the special tokens, and the 256 byte tokens where there are any.
  std::int64_t vocab_size = 8000;
  /// An unknown character becomes its UTF-8 bytes instead of <unk>.
  bool byte_fallback = false;
  /// The share of the text's characters that gets an id, 0.98 to 1.
  double character_coverage = 0.9995;
  /// "nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf" or "identity".
  std::string normalization = "nmt_nfkc";
  /// Runs of spaces become one, and spaces at both ends are dropped.
  bool remove_extra_whitespaces = true;
  bool split_digits = false;
  /// Always one token each. "\n" here is the only way to keep line ends (with "identity").
  std::vector<std::string> user_defined_symbols;
  int pad_id = 0, eos_id = 1, unk_id = 2, bos_id = -1;
  /// Part of the result: sums over threads are rounded in their order.
  int num_threads = 16;
};

/// The bytes of a model learnt from the lines of `texts`, which are UTF-8. Throws Error with the cause.
std::string train_sentencepiece(std::span<const std::string_view> texts, const SentencePieceOptions& options);

}  // namespace zoo
