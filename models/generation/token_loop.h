#pragma once

#include <memory>

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

}  // namespace zoo
