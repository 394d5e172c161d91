#pragma once

#include <memory>

#include "models/generation/generate.h"

namespace zoo {

/// What one call of generate() is given, and its result so far.
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
  /// Adds to the rows. False if the callback asked to stop.
  virtual bool step() = 0;
  /// Called once after the last step: completes the result.
  virtual void finish() {}
};

/// generate() with beam search: num_return_sequences beams per prompt, best first. The result is there when
/// it has finished. Throws Error as generate() does.
std::unique_ptr<TokenLoop> beam_loop(GenerationTask& task);

/// generate() with options.draft; a step drafts and reads tokens of one row. Throws Error as it does, and if
/// the two models do not match.
std::unique_ptr<TokenLoop> drafting_loop(GenerationTask& task);

}  // namespace zoo
