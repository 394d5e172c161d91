#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/learning/word_counts.h"
#include "tokenizer/token_id.h"

namespace zoo {

/// The settings of `tokenizers`' BpeTrainer, with its names.
struct MergeTrainerOptions {
  std::int64_t vocab_size = 30000;  // at most so many tokens, the special ones included
  std::int64_t min_frequency = 0;   // a pair that occurs less often is not merged
  std::vector<std::string> special_tokens;
  std::u32string initial_alphabet;             // characters that are tokens whether they occur or not
  std::optional<std::int64_t> limit_alphabet;  // only the most frequent characters; the others are left out
  std::string continuing_subword_prefix;       // before what does not begin a word, "##" in WordPiece
  TrainingProgress on_progress;
};

/// A vocabulary that was learnt; tokens[id] is an id's text, and merges are in their order of learning.
struct LearntMerges {
  std::vector<std::string> tokens;
  std::vector<std::pair<TokenId, TokenId>> merges;
};

/// Learns byte pair encoding (Sennrich et al., 2016): again and again the most frequent pair of neighbours
/// becomes a token, of equally frequent ones that of the lower ids. Words are UTF-8. Gives the tokens and
/// merges of `tokenizers`' BpeTrainer. Where that leaves an order to chance it is by code point: of the
/// characters with a prefix, and of equally frequent characters at the limit of the alphabet (the lower ones
/// stay). Throws Error if vocab_size has no room for the special tokens and the characters.
LearntMerges learn_merges(const WordCounts& words, const MergeTrainerOptions& options);

}  // namespace zoo
