#pragma once

#include <chrono>
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

  std::int64_t first_state() const {
    return options_.constraint ? options_.constraint->begin(options_.max_new_tokens) : 0;
  }
  std::int64_t next_state(std::int64_t state, std::int64_t id) const {
    return options_.constraint ? options_.constraint->next(state, id) : 0;
  }

  /// True if a row ends with the last of its new tokens, behind which the constraint's state is `state`,
  /// whatever max_new_tokens says.
  bool ends(const TokenIds& new_ids, std::int64_t state) const;

 private:
  const GenerationOptions& options_;
  LogitsFilters filters_;
};

/// Writes down how long the prompts took, and then how long the rest.
class GenerationWatch {
 public:
  explicit GenerationWatch(GenerationResult& result) : result_(result) {}

  void step() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - start_).count();
    (first_ ? result_.seconds_prefill : result_.seconds_decode) = seconds;
    if (first_) start_ = now;
    first_ = false;
  }

 private:
  GenerationResult& result_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  bool first_ = true;
};

/// The log-probabilities [B, V] that logits stand for, float32.
at::Tensor log_probabilities_of(const at::Tensor& logits);

}  // namespace zoo
