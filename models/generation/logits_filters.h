#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/generation/decoding_session.h"

namespace zoo {

/// What a row holds already: all its tokens, of which the first ones were given (the prompt, or the start
/// token of an encoder-decoder).
struct RowHistory {
  const TokenIds* tokens = nullptr;
  std::size_t given = 0;

  std::int64_t new_tokens() const { return static_cast<std::int64_t>(tokens->size() - given); }
};
using RowHistories = std::vector<RowHistory>;

/// Changes the logits of the next token before one is chosen. Takes and gives [B, V] float32, rows[b] being
/// the history of row b; a token that must not be chosen gets -inf.
///
/// The order in which filters follow one another is Hugging Face's: first those that look at what a row holds
/// (history_filters.h) for every way of choosing, then, where a token is drawn, those that look at
/// probabilities (probability_filters.h).
class LogitsFilter {
 public:
  virtual ~LogitsFilter() = default;
  virtual at::Tensor apply(const at::Tensor& logits, const RowHistories& rows) const = 0;
};

using LogitsFilters = std::vector<std::unique_ptr<LogitsFilter>>;

/// Applies them in order.
at::Tensor apply_filters(const LogitsFilters& filters, at::Tensor logits, const RowHistories& rows = {});

}  // namespace zoo
