#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/verbs/generate/generate_session.h"
#include "models/generation/token_constraint.h"
#include "tokenizer/constraint/pattern.h"

namespace zoo {

/// The constraint of --regex or --json_schema over the tokens of the session's tokenizer; null without these
/// flags. Throws Error naming the flag or file if it cannot be read or no text matches.
std::shared_ptr<const TokenConstraint> make_text_constraint(const GenerateFlags& flags,
                                                            const GenerateSession& session);

/// The constraint of a pattern over the session's tokens, whose bytes are `tokens` (token_bytes()). Throws
/// Error if no text matches.
std::shared_ptr<const TokenConstraint> make_text_constraint(const PatternPtr& pattern,
                                                            const GenerateSession& session,
                                                            std::vector<std::string> tokens);

}  // namespace zoo
