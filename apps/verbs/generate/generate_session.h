#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/verbs/generate/generate_flags.h"
#include "tokenizer/constraint/stop_strings.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

/// Everything that `tzoo generate` needs besides the weights.
struct GenerateSession {
  CheckpointConfig checkpoint;
  GenerationDefaults defaults;
  std::shared_ptr<const Tokenizer> tokenizer;  // null if the directory has none
  StopStrings stop;

  std::int64_t vocab_size() const { return checkpoint.config.vocab_size; }
  bool has_encoder() const { return checkpoint.config.shape == Shape::kEncoderDecoder; }
};

/// Reads everything except the weights. Throws Error naming the directory, or the flag that needs a missing
/// tokenizer.
GenerateSession open_generate_session(const GenerateFlags& flags);

/// The prompts from the flags, each repeated for the number of samples. Throws Error or UsageError naming the
/// flag.
std::vector<TokenIds> prompts_of(const GenerateFlags& flags, const GenerateSession& session);

/// Options from the flags, completed by the checkpoint and its tokenizer.
GenerationOptions options_of(const GenerateFlags& flags, const GenerateSession& session,
                             const std::vector<TokenIds>& prompts);

/// Sets options.row_ends, so that a row ends at a stop string of the session, which must outlive the options.
void set_stop_strings(GenerationOptions& options, const GenerateSession& session);

/// The model of --draft_model, or null.
std::unique_ptr<DecodingModel> load_draft(const GenerateFlags& flags);

/// Ids that decode to text: neither end tokens nor ids beyond the tokenizer's vocabulary. The session must
/// have a tokenizer and outlive this object.
class TextIds {
 public:
  explicit TextIds(const GenerateSession& session)
      : ends_(session.defaults.eos_token_ids), tokenizer_(*session.tokenizer) {}

  bool contains(TokenId id) const;
  /// Decodes the ids from index `first` on, skipping those without text.
  std::string text_of(const TokenIds& ids, std::size_t first = 0) const;

 private:
  TokenIds ends_;
  const Tokenizer& tokenizer_;
};

}  // namespace zoo
