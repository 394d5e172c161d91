#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/learning/merge_trainer.h"
#include "tokenizer/text/split_patterns.h"

namespace zoo {

/// What a byte-level BPE vocabulary is learnt by: the defaults of `tokenizers`' ByteLevelBPETokenizer, with
/// GPT-2's special token.
struct BpeTrainerOptions {
  std::int64_t vocab_size = 30000;  // with the special tokens and the 256 bytes
  std::int64_t min_frequency = 2;   // a pair that occurs less often is not merged
  /// They come first in the vocabulary; the first is what begins and ends a text.
  std::vector<std::string> special_tokens = {"<|endoftext|>"};
  SplitPattern pattern = SplitPattern::gpt2;
  TrainingProgress on_progress;
};

/// Learns from the lines of a text, line ends included; in `tokens` bytes are in GPT-2's alphabet. The same
/// as `tokenizers` learns from a file of the text. Throws Error if the text is not UTF-8, or if vocab_size is
/// too small.
LearntMerges train_bpe(std::string_view text, const BpeTrainerOptions& options);

/// Writes tokenizer.json, vocab.json, merges.txt and tokenizer_config.json into an existing directory.
void save_bpe(const LearntMerges& learnt, const BpeTrainerOptions& options,
              const std::filesystem::path& directory);

}  // namespace zoo
