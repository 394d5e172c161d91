#pragma once

#include <vector>

#include "models/generation/choosing.h"
#include "models/generation/generate.h"
#include "models/generation/growing_rows.h"

namespace zoo {

/// The rows that have not ended, of a generation in which each takes one token after the other, and what is
/// written down of their tokens. The options, the rules and the result must outlive this.
class RunningRows {
 public:
  /// Rows as they are before the first new token.
  RunningRows(const GenerationOptions& options, const ChoosingRules& rules, const GrowingRows& rows,
              GenerationResult& result);

  bool any() const { return !numbers_.empty(); }

  /// For each of the rows, its number in the result.
  const std::vector<std::size_t>& numbers() const { return numbers_; }

  /// The logits [B, V] of the rows' next tokens with what is forbidden at -inf.
  at::Tensor allowed(const at::Tensor& logits, const GrowingRows& rows);

  /// What has come of a step.
  struct Step {
    std::vector<std::int64_t> going;  // the rows that have not ended, by their present places
    bool wanted = true;               // false: the callback wants no more
  };

  /// Row b takes chosen[b], for which the model gave logits [B, V]. Rows that end are forgotten here.
  Step take(const TokenIds& chosen, const at::Tensor& logits, const TokenCallback& on_token);

 private:
  void keep(const std::vector<std::int64_t>& rows);

  const GenerationOptions& options_;
  const ChoosingRules& rules_;
  GenerationResult& result_;
  std::vector<std::size_t> numbers_, given_;
  std::vector<std::int64_t> states_;  // of the constraint
};

}  // namespace zoo
