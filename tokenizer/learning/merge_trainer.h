#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/pipeline/flat_table.h"
#include "tokenizer/token_id.h"

namespace zoo {

/// The number of times each word occurs in a training text, the only input of the trainers.
using WordCounts = TextTable<std::int64_t>;

/// Reports training progress: first "bytes" of the text read, then "tokens" learnt.
using TrainingProgress = std::function<void(std::string_view unit, std::int64_t done, std::int64_t total)>;

/// The options of `tokenizers`' BpeTrainer, with its names.
struct MergeTrainerOptions {
  std::int64_t vocab_size = 30000;  // maximum, special tokens included
  std::int64_t min_frequency = 0;   // pairs that occur less often are not merged
  std::vector<std::string> special_tokens;
  std::u32string initial_alphabet;             // always tokens, even if the text lacks them
  std::optional<std::int64_t> limit_alphabet;  // keeps the most frequent characters and drops the others
  std::string continuing_subword_prefix;       // written before a token inside a word: "##" in WordPiece
  TrainingProgress on_progress;
};

/// A learnt vocabulary: tokens[id] is the text of an id, merges are in the order of learning.
struct LearntMerges {
  std::vector<std::string> tokens;
  std::vector<std::pair<TokenId, TokenId>> merges;
};

/// Learns byte pair encoding (Sennrich et al., 2016): repeatedly merges the most frequent pair of neighbours
/// into a token; of equally frequent pairs, the one with the lowest ids. Words are UTF-8. The result equals
/// that of `tokenizers`' BpeTrainer. If that depends on a hash order, the order here is by code point:
/// characters with a prefix, and equally frequent characters at the limit of the alphabet (the lower ones
/// stay). Throws Error if vocab_size has no room for the special tokens and the characters.
LearntMerges learn_merges(const WordCounts& words, const MergeTrainerOptions& options);

}  // namespace zoo
