#pragma once

#include <memory>
#include <vector>

#include "apps/verbs/generate/generate_flags.h"
#include "models/tasks/generate_session.h"

namespace zoo {

/// Reads everything except the weights. Throws Error naming the directory, or the flag that needs a missing
/// tokenizer.
GenerateSession open_session(const GenerateFlags& flags);

/// The prompts from the flags, each repeated for the number of samples. Throws Error or UsageError naming the
/// flag.
std::vector<TokenIds> prompts_of(const GenerateFlags& flags, const GenerateSession& session);

/// Options from the flags, completed by the checkpoint and its tokenizer.
GenerationOptions options_of(const GenerateFlags& flags, const GenerateSession& session,
                             const std::vector<TokenIds>& prompts);

/// The model of --draft_model, or null.
std::unique_ptr<DecodingModel> load_draft(const GenerateFlags& flags);

}  // namespace zoo
