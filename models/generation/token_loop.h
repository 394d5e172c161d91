#pragma once

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

}  // namespace zoo
