#pragma once

#include <memory>

#include "apps/verbs/generate/generate_session.h"
#include "models/generation/token_constraint.h"

namespace zoo {

/// What --regex or --json_schema says, over the tokens of the session's tokenizer; null where neither is
/// given. Throws Error naming the flag, or the file, where it cannot be read or no text fits.
std::shared_ptr<const TokenConstraint> make_text_constraint(const GenerateFlags& flags,
                                                            const GenerateSession& session);

}  // namespace zoo
