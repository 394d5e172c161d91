#pragma once

#include <vector>

#include "models/generation/decoding_batch.h"
#include "models/generation/generate.h"
#include "models/generation/logits_rules.h"

namespace zoo {

/// The rows that have not ended, in a generation with one token per row and step, and the record of their
/// tokens. The options, the rules and the result must outlive this.
class RunningRows {
 public:
  /// Rows before the first new token.
  RunningRows(const GenerationOptions& options, const LogitsRules& rules, const DecodingBatch& rows,
              GenerationResult& result);

  bool any() const { return !numbers_.empty(); }

  /// Index of each row in the result.
  const std::vector<std::size_t>& numbers() const { return numbers_; }

  /// Logits [B, V] of the rows' next tokens, with -inf for forbidden tokens.
  at::Tensor allowed(const at::Tensor& logits, const DecodingBatch& rows);

  /// Outcome of a step.
  struct Step {
    std::vector<std::int64_t> going;  // rows that have not ended, by their present index
    bool wanted = true;               // false: the callback asked to stop
  };

  /// Appends chosen[b] to row b; the model gave logits [B, V]. Drops the rows that end.
  Step take(const TokenIds& chosen, const at::Tensor& logits, const TokenCallback& on_token);

 private:
  void keep(const std::vector<std::int64_t>& rows);

  const GenerationOptions& options_;
  const LogitsRules& rules_;
  GenerationResult& result_;
  std::vector<std::size_t> numbers_, given_;
  std::vector<std::int64_t> states_;  // states of the constraint
};

}  // namespace zoo
