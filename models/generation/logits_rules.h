#pragma once

#include <chrono>
#include <vector>

#include "models/generation/decoding_batch.h"
#include "models/generation/generate.h"

namespace zoo {

/// Rules shared by all ways of choosing tokens: history filters, the constraint, and the end of a row.
class LogitsRules {
 public:
  /// Throws Error for options out of range.
  LogitsRules(const GenerationOptions& options, std::int64_t vocab_size);

  /// Scores [B, V] of the rows' next tokens, with -inf for forbidden tokens. states[b] is the constraint's
  /// state after row b's tokens; may be empty without a constraint.
  at::Tensor apply(const at::Tensor& scores, const RowHistories& rows,
                   const std::vector<std::int64_t>& states) const;

  std::int64_t first_state() const {
    return options_.constraint ? options_.constraint->begin(options_.max_new_tokens) : 0;
  }
  std::int64_t next_state(std::int64_t state, TokenId id) const {
    return options_.constraint ? options_.constraint->next(state, id) : 0;
  }

  /// True if the row ends with its last new token, whatever max_new_tokens is; `state` is the constraint's
  /// state after that token.
  bool ends(const TokenIds& new_ids, std::int64_t state) const;

 private:
  const GenerationOptions& options_;
  LogitsFilters filters_;
};

/// Times the prompts and then the rest of a generation.
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

/// Log-probabilities [B, V] of the logits (log-softmax), float32.
at::Tensor log_probabilities_of(const at::Tensor& logits);

}  // namespace zoo
