#pragma once

/// @file
/// Use:
///
///     const zoo::BpeTrainerOptions options{.vocab_size = 2000};
///     zoo::save_bpe(zoo::train_bpe(text, options), options, "kjv-bpe");  // an existing directory

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/learning/merge_trainer.h"
#include "tokenizer/text/split_patterns.h"

namespace zoo {

/// Options for byte-level BPE: the defaults of `tokenizers`' ByteLevelBPETokenizer, with GPT-2's special
/// token.
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

}  // namespace zoo
