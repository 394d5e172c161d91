#pragma once

#include <memory>
#include <vector>

#include "models/generation/decoding_batch.h"
#include "models/generation/generate.h"

namespace zoo {

/// Input of one call of generate(), and its result so far.
struct GenerationTask {
  DecodingModel& model;
  std::vector<TokenIds> prompts;
  GenerationOptions options;
  TokenCallback on_token;
  GenerationResult result;
};

/// A way of choosing tokens, one step at a time. The task must outlive it.
class TokenLoop {
 public:
  virtual ~TokenLoop() = default;
  /// False once all rows have ended.
  virtual bool going() const = 0;
  /// Adds tokens to the rows. False if the callback asked to stop.
  virtual bool step() = 0;
  /// Called once after the last step: completes the result.
  virtual void finish() {}
};

/// generate() with beam search: num_return_sequences beams per prompt, best first. Idea: keep the num_beams
/// hypotheses with the highest log-probability; at each step, score all continuations of all of them, move
/// those that end to a list of finished beams, and continue the best of the others. The result is complete
/// only after the last step. Throws Error as generate() does.
std::unique_ptr<TokenLoop> beam_loop(GenerationTask& task);

/// generate() with drafts (speculative sampling). Idea: reading several tokens takes the model hardly
/// longer than one, so a small model, or the text so far, drafts some, the model reads them at once and
/// accepts a prefix, by a rule that leaves its distribution unchanged. A step does this for one row. Throws
/// Error as generate() does, and if a draft model does not match.
std::unique_ptr<TokenLoop> drafting_loop(GenerationTask& task);

/// Rules shared by all ways of choosing tokens: history filters, the constraint, and the end of a row.
class LogitsRules {
 public:
  /// Throws Error for options out of range.
  LogitsRules(const GenerationOptions& options, std::int64_t vocab_size);

  /// Scores [B, V] of the rows' next tokens, with -inf for forbidden tokens. states[b] is the constraint's
  /// state after row b's tokens, without the forced ones; may be empty without a constraint.
  at::Tensor apply(const at::Tensor& scores, const RowHistories& rows,
                   const std::vector<std::int64_t>& states) const;

  /// State of a row of `length` tokens, none of them new.
  std::int64_t first_state(std::size_t length) const;
  /// State after `id`, which follows a row of `length` tokens.
  std::int64_t next_state(std::int64_t state, TokenId id, std::size_t length) const {
    return options_.constraint && !forces_first(length) ? options_.constraint->next(state, id) : state;
  }

  /// True if the row ends with its last new token, whatever max_new_tokens is; `state` is the constraint's
  /// state after that token.
  bool ends(const TokenIds& new_ids, std::int64_t state) const;

 private:
  // True if the token after a row of `length` tokens is forced_bos_token_id.
  bool forces_first(std::size_t length) const {
    return length == 1 && options_.history.forced_bos_token_id.has_value();
  }
  bool forces_last() const { return !options_.history.forced_eos_token_ids.empty(); }

  const GenerationOptions& options_;
  LogitsFilters filters_;
};

/// Log-probabilities [B, V] of the logits (log-softmax), float32.
at::Tensor log_probabilities_of(const at::Tensor& logits);

}  // namespace zoo
