#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/learning/merge_trainer.h"
#include "tokenizer/pipeline/normalizer.h"

namespace zoo {

/// What a WordPiece vocabulary is learnt by: the defaults of `tokenizers`' BertWordPieceTokenizer.
struct WordPieceTrainerOptions {
  std::int64_t vocab_size = 30000;                    // with the special tokens and the characters
  std::int64_t min_frequency = 2;                     // a pair that occurs less often is not merged
  std::optional<std::int64_t> limit_alphabet = 1000;  // only so many characters, the most frequent ones
  /// They come first in the vocabulary; [UNK], [CLS] and [SEP] must be among them.
  std::vector<std::string> special_tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  BertNormalizerOptions normalizer;
  TrainingProgress on_progress;
};

/// Learns the tokens of WordPiece from a text, by id: the way of BERT's published vocabularies is not known;
/// this is `tokenizers`' (byte pair encoding of characters, "##" before those that do not begin a word),
/// which gives the same tokens, in the same order but for what learn_merges() says. Throws Error if the text
/// is not UTF-8, if vocab_size is too small, or if a special token is missing.
std::vector<std::string> train_wordpiece(std::string_view text, const WordPieceTrainerOptions& options);

/// Writes tokenizer.json, vocab.txt and tokenizer_config.json into an existing directory.
void save_wordpiece(const std::vector<std::string>& tokens, const WordPieceTrainerOptions& options,
                    const std::filesystem::path& directory);

}  // namespace zoo
