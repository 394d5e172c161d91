#pragma once

#include "models/generation/generate.h"

namespace zoo {

/// generate() with options.draft. Throws Error as it does, and if the two models do not match.
void generate_drafted(DecodingModel& model, const std::vector<TokenIds>& prompts,
                      const GenerationOptions& options, const TokenCallback& on_token,
                      GenerationResult& result);

}  // namespace zoo
