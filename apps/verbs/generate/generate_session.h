#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/verbs/generate/generate_flags.h"
#include "models/checkpoint/checkpoint.h"
#include "models/generation/generation_config.h"
#include "tokenizer/constraint/stop_strings.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

/// What `tzoo generate` works with, besides the weights.
struct GenerateSession {
  CheckpointConfig checkpoint;
  GenerationDefaults defaults;
  std::unique_ptr<Tokenizer> tokenizer;  // null: the directory has none
  StopStrings stop;

  std::int64_t vocab_size() const { return checkpoint.config.vocab_size; }
  bool has_encoder() const { return checkpoint.config.shape == Shape::kEncoderDecoder; }
};

/// Reads everything but the weights. Throws Error naming the directory, or the flag that needs a tokenizer
/// where there is none.
GenerateSession open_generate_session(const GenerateFlags& flags);

/// The prompts that the flags name, each as often as there shall be samples of it. Throws Error or
/// UsageError naming the flag.
std::vector<TokenIds> prompts_of(const GenerateFlags& flags, const GenerateSession& session);

/// The options with what the checkpoint and its tokenizer say.
GenerationOptions options_of(const GenerateFlags& flags, const GenerateSession& session);

/// Ids that have a text: no end token, and none of those that a model may have beyond its tokenizer's. The
/// session must have a tokenizer and outlive this.
class TextIds {
 public:
  explicit TextIds(const GenerateSession& session)
      : ends_(session.defaults.eos_token_ids), tokenizer_(*session.tokenizer) {}

  bool contains(std::int64_t id) const;
  /// The bytes of the ids that have some, from number `first` on.
  std::string text_of(const TokenIds& ids, std::size_t first = 0) const;

 private:
  TokenIds ends_;
  const Tokenizer& tokenizer_;
};

}  // namespace zoo
