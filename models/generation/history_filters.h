#pragma once

#include "models/generation/logits_filters.h"

namespace zoo {

/// What a row holds decides. The options, in the order in which they are applied: Hugging Face's, with
/// OpenAI's two penalties behind the repetition penalty.
struct HistoryOptions {
  /// Keskar et al. (2019): the logit of every token of the row, the given ones included, is divided by this,
  /// or multiplied where it is negative. Positive; 1 is off.
  double repetition_penalty = 1.0;
  /// OpenAI's: taken from the logit of each new token of the row, once; and for each time that it is there.
  double presence_penalty = 0.0, frequency_penalty = 0.0;
  /// No n-gram of this length twice in a row, the given tokens included. 0 is off.
  std::int64_t no_repeat_ngram_size = 0;
  /// Sequences of which the last token is forbidden where the others have just been. An end token by itself
  /// is not, as with Hugging Face.
  std::vector<TokenIds> bad_words;
  /// No end token before a row has so many tokens, the given ones counted; or so many new ones.
  std::int64_t min_length = 0, min_new_tokens = 0;
  /// What must follow where a row has one token (an encoder-decoder's start token), and what must be the last
  /// one that max_new_tokens allows. -1, and an empty list: nothing.
  std::int64_t forced_bos_token_id = -1;
  TokenIds forced_eos_token_ids;
};

/// What the options need besides.
struct HistoryContext {
  TokenIds eos_token_ids;
  std::int64_t max_new_tokens = 0, vocab_size = 0;
};

/// The filters that the options ask for. They work on the CPU, where they leave the logits. Throws Error
/// naming the option that is out of range, with what was given.
LogitsFilters make_history_filters(const HistoryOptions& options, const HistoryContext& context);

}  // namespace zoo
