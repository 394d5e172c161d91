#pragma once

#include <memory>
#include <vector>

#include "models/generation/continuous_batch.h"
#include "models/generation/logits_rules.h"

namespace zoo {

/// A request in a ContinuousBatch, and the state that its rows share.
struct BatchWork {
  /// Throws Error for options out of range.
  BatchWork(std::shared_ptr<BatchRequest> given, std::int64_t vocab_size);

  std::size_t rows() const { return request->prompts.size() * static_cast<std::size_t>(request->samples); }

  std::shared_ptr<BatchRequest> request;
  LogitsRules rules;
  TokenSampler sampler;
  std::int64_t first_state;  // of the constraint
  std::size_t entered = 0;   // rows
  bool failed = false;
};

/// A row of the session. While it reads its prompt, it represents several samples.
struct BatchRow {
  std::shared_ptr<BatchWork> work;
  std::size_t number = 0;  // in the request, of the first sample
  std::int64_t samples = 1;
  TokenIds tokens, new_ids;
  std::size_t given = 0, read = 0;  // tokens of the prompt; those that the session has read
  std::int64_t state = 0;           // of the constraint
  std::vector<ScoredToken> scores;  // of the prompt
  bool was_read = false, ended = false;

  bool reads() const { return !was_read; }
  std::int64_t unread() const { return static_cast<std::int64_t>(tokens.size() - read); }

  /// Adds the scores of the tokens that follow those just read, whose logits are [T, V]. After the prompt's
  /// last token, calls on_prompt.
  void score_prompt(const at::Tensor& logits);

  /// Reports once that the row, or all samples that it represents, has ended.
  void end(RowEnd reason);
};

/// Chooses a token for each of a request's rows, whose logits are [rows, V], and ends rows. Throws Error if
/// the rules leave a row no token.
void write_tokens(BatchWork& work, const std::vector<BatchRow*>& rows, const at::Tensor& logits);

}  // namespace zoo
