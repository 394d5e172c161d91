#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/verbs/generate/generate_session.h"
#include "models/generation/token_constraint.h"
#include "tokenizer/constraint/pattern.h"
#include "tokenizer/constraint/token_automaton.h"

namespace zoo {

/// The constraint of --regex or --json_schema over the tokens of the session's tokenizer; null without these
/// flags. Throws Error naming the flag or file if it cannot be read or no text matches.
std::shared_ptr<const TokenConstraint> make_text_constraint(const GenerateFlags& flags,
                                                            const GenerateSession& session);

/// The texts of a pattern in the session's tokens, whose bytes are `tokens` (token_bytes()). Threads may
/// share it. Throws Error if no text matches.
std::shared_ptr<const TokenAutomaton> make_token_automaton(const PatternPtr& pattern,
                                                           const GenerateSession& session,
                                                           std::vector<std::string> tokens);

/// The constraint of an automaton that was made for such a session. One thread may use it.
std::shared_ptr<const TokenConstraint> make_text_constraint(std::shared_ptr<const TokenAutomaton> automaton,
                                                            const GenerateSession& session);

}  // namespace zoo
