#pragma once

#include <vector>

#include "models/generation/generate.h"
#include "models/generation/growing_rows.h"

namespace zoo {

/// What every way of choosing tokens shares: the filters that look at what a row holds, the constraint, and
/// when a row ends.
class ChoosingRules {
 public:
  /// Throws Error for options out of range.
  ChoosingRules(const GenerationOptions& options, std::int64_t vocab_size);

  /// The scores [B, V] of the rows' next tokens with what is forbidden at -inf. states[b] is the state of the
  /// constraint behind row b's tokens; they may be empty where there is none.
  at::Tensor apply(const at::Tensor& scores, const RowHistories& rows,
                   const std::vector<std::int64_t>& states) const;

  std::int64_t first_state() const { return options_.constraint ? options_.constraint->begin() : 0; }
  std::int64_t next_state(std::int64_t state, std::int64_t id) const {
    return options_.constraint ? options_.constraint->next(state, id) : 0;
  }

  /// True if a row ends with the last of its new tokens, whatever max_new_tokens says.
  bool ends(const TokenIds& new_ids) const;

 private:
  const GenerationOptions& options_;
  LogitsFilters filters_;
};

/// The log-probabilities [B, V] that logits stand for, float32.
at::Tensor log_probabilities_of(const at::Tensor& logits);

}  // namespace zoo
