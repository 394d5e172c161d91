#pragma once

/// @file
/// Use:
///
///     const auto request = std::make_shared<zoo::BatchRequest>();
///     request->prompts = {ids};
///     request->options = {.max_new_tokens = 20};
///     request->on_end = [](std::size_t row, zoo::RowEnd end) { std::cout << row << " has ended\n"; };
///     batch.submit(request);  // a ContinuousBatch

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/generation/generate.h"

namespace zoo {

/// A token and the model's log-probability of it, before any filter.
struct ScoredToken {
  TokenId id = 0;
  double log_probability = 0;
  std::vector<std::pair<TokenId, double>> likeliest;  // the most probable ids, best first
};

/// Reason why a row has ended: an end token, a complete constraint or `row_ends`; max_new_tokens; the
/// request.
enum class RowEnd { kStop, kLength, kCancelled };

/// Prompts that a ContinuousBatch continues with the same options, and callbacks for the results, which run
/// on the thread of step(). Row p * samples + s is sample s of prompt p, as if generate() were given each
/// prompt `samples` times.
struct BatchRequest {
  std::vector<TokenIds> prompts;
  /// Rows per prompt, at most the number of slots. The prompt is read once if enough slots are free, else
  /// again for rows that enter later.
  std::int64_t samples = 1;
  GenerationOptions options;
  bool only_prompt = false;               // generate no token, whatever max_new_tokens is
  std::optional<std::int64_t> likeliest;  // log-probabilities, and this many of the most probable ids
  bool scores_prompt = false;             // also for the prompt's tokens
  std::atomic<bool> cancelled = false;    // any thread may set it: the rows leave before the next step

  /// Scores of a prompt's tokens after its first one; only with scores_prompt.
  std::function<void(std::size_t prompt, const std::vector<ScoredToken>& scores)> on_prompt;
  /// Number of a prompt's tokens that were not read because the session held them. Not with scores_prompt.
  std::function<void(std::size_t prompt, std::int64_t tokens)> on_reuse;
  std::function<void(std::size_t row, const ScoredToken& token)> on_token;
  std::function<void(std::size_t row, RowEnd end)> on_end;
  std::function<void(const std::string& message)> on_failure;  // instead of on_end for the remaining rows
};

}  // namespace zoo
