#pragma once

/// @file
/// Use:
///
///     class Bounded : public zoo::LogitsFilter {
///       at::Tensor apply(const at::Tensor& logits, const zoo::RowHistories& rows) const override {
///         return logits.clamp_max(20);
///       }
///     };

#include <memory>
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
/// Filters run in Hugging Face's order: first those that depend on a row's tokens (history_filters.h), for
/// every way of choosing; then, for sampling, those that depend on probabilities (sampler.h).
class LogitsFilter {
 public:
  virtual ~LogitsFilter() = default;
  virtual at::Tensor apply(const at::Tensor& logits, const RowHistories& rows) const = 0;
};

using LogitsFilters = std::vector<std::unique_ptr<LogitsFilter>>;

/// Applies them in order.
inline at::Tensor apply_filters(const LogitsFilters& filters, at::Tensor logits,
                                const RowHistories& rows = {}) {
  for (const auto& filter : filters) logits = filter->apply(logits, rows);
  return logits;
}

}  // namespace zoo
