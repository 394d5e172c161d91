#pragma once

/// @file
/// Use:
///
///     const zoo::BpeTrainerOptions options{.vocab_size = 2000};
///     zoo::save_bpe(zoo::train_bpe(text, options), options, "kjv-bpe");  // an existing directory
///     zoo::save_wordpiece(zoo::train_wordpiece(text, {}), {}, "kjv-wordpiece");

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/learning/merge_trainer.h"
#include "tokenizer/pipeline/normalizer.h"
#include "tokenizer/text/split_patterns.h"

namespace zoo {

/// Options for byte-level BPE: the defaults of `tokenizers`, with GPT-2's special token.
struct BpeTrainerOptions {
  std::int64_t vocab_size = 30000;  // special tokens and the 256 bytes included
  std::int64_t min_frequency = 2;   // pairs that occur less often are not merged
  /// They come first in the vocabulary; the first one is bos and eos.
  std::vector<std::string> special_tokens = {"<|endoftext|>"};
  SplitPattern pattern = SplitPattern::gpt2;
  TrainingProgress on_progress;
};

/// Learns from the lines of a text, line ends included, as `tokenizers` does from a file. The tokens are in
/// GPT-2's byte alphabet. Throws Error if the text is not UTF-8 or vocab_size is too small.
LearntMerges train_bpe(std::string_view text, const BpeTrainerOptions& options);

/// Writes tokenizer.json, vocab.json, merges.txt and tokenizer_config.json into an existing directory.
void save_bpe(const LearntMerges& learnt, const BpeTrainerOptions& options,
              const std::filesystem::path& directory);

/// Options for WordPiece: the defaults of `tokenizers`' BertWordPieceTokenizer.
struct WordPieceTrainerOptions {
  std::int64_t vocab_size = 30000;                    // special tokens and characters included
  std::int64_t min_frequency = 2;                     // pairs that occur less often are not merged
  std::optional<std::int64_t> limit_alphabet = 1000;  // keeps only the most frequent characters
  /// They come first in the vocabulary; [UNK], [CLS] and [SEP] are required.
  std::vector<std::string> special_tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  BertNormalizerOptions normalizer;
  TrainingProgress on_progress;
};

/// Learns a WordPiece vocabulary; tokens[id]. Google's method for BERT is unpublished; this is `tokenizers`'
/// method: byte pair encoding of characters, with "##" before those inside a word. The tokens and their order
/// are the same except for the ties that learn_merges() describes. Throws Error if the text is not UTF-8,
/// vocab_size is too small or a special token is missing.
std::vector<std::string> train_wordpiece(std::string_view text, const WordPieceTrainerOptions& options);

/// Writes tokenizer.json, vocab.txt and tokenizer_config.json into an existing directory.
void save_wordpiece(const std::vector<std::string>& tokens, const WordPieceTrainerOptions& options,
                    const std::filesystem::path& directory);

}  // namespace zoo
