#pragma once

/// @file
/// Use:
///
///     auto filters = zoo::make_history_filters({.repetition_penalty = 1.1}, {.vocab_size = 50257});
///     filters.push_back([](const at::Tensor& x, const zoo::RowHistories&) { return x.clamp_max(20); });
///     const at::Tensor allowed = zoo::apply_filters(filters, logits, {{.tokens = &ids, .given = 5}});

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/generation/decoding_session.h"

namespace zoo {

/// Tokens of a row so far. The first ones were given (the prompt, or an encoder-decoder's start token).
struct RowHistory {
  const TokenIds* tokens = nullptr;
  std::size_t given = 0;

  std::int64_t new_tokens() const { return static_cast<std::int64_t>(tokens->size() - given); }
};
using RowHistories = std::vector<RowHistory>;

/// Changes the logits of the next token before it is chosen. Takes and returns [B, V] float32, rows[b] being
/// the history of row b; a forbidden token gets -inf.
///
/// Filters run in Hugging Face's order: first those that depend on a row's tokens (HistoryOptions), for
/// every way of choosing; then, for sampling, those that depend on probabilities (sampler.h).
using LogitsFilter = std::function<at::Tensor(const at::Tensor& logits, const RowHistories& rows)>;
using LogitsFilters = std::vector<LogitsFilter>;

inline at::Tensor apply_filters(const LogitsFilters& filters, at::Tensor logits,
                                const RowHistories& rows = {}) {
  for (const LogitsFilter& filter : filters) logits = filter(logits, rows);
  return logits;
}

/// Filters that depend on a row's tokens. The options are in order of application: Hugging Face's order, with
/// OpenAI's two penalties after the repetition penalty.
struct HistoryOptions {
  /// As in OpenAI's API: numbers added to the logits of these ids.
  std::vector<std::pair<TokenId, double>> logit_bias;
  /// Keskar et al. (2019): divides the logit of every token in the row, given tokens included, by this, or
  /// multiplies it if it is negative. Positive; 1 is off.
  double repetition_penalty = 1.0;
  /// As in OpenAI's API: subtracted from the logit of each new token, once, and once per occurrence.
  double presence_penalty = 0.0, frequency_penalty = 0.0;
  /// No n-gram of this length occurs twice in a row, given tokens included. 0 is off.
  std::int64_t no_repeat_ngram_size = 0;
  /// Sequences whose last token is forbidden after the others. As in Hugging Face, a single end token is not.
  std::vector<TokenIds> bad_words;
  /// Minimum number of tokens before an end token: min_length counts given ones; min_new_tokens, if positive,
  /// counts only new ones and overrides min_length.
  std::int64_t min_length = 0, min_new_tokens = 0;
  /// Forced after a row's only token (an encoder-decoder's start token), and as the last of max_new_tokens.
  std::optional<std::int64_t> forced_bos_token_id;
  TokenIds forced_eos_token_ids;
  /// Ids that are forbidden always, and as the first new token (the first after a forced one).
  TokenIds suppressed, suppressed_first;
};

/// Values that the options refer to.
struct HistoryContext {
  TokenIds eos_token_ids;
  std::int64_t max_new_tokens = 0, vocab_size = 0;
};

/// Makes the filters that the options ask for. They run on the CPU and leave the logits there. Throws Error
/// naming the option that is out of range and its value.
LogitsFilters make_history_filters(const HistoryOptions& options, const HistoryContext& context);

}  // namespace zoo
