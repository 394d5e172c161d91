#pragma once

/// @file
/// Use:
///
///     const auto pattern = zoo::parse_regular_expression("[0-9]+", zoo::ExpressionDialect::kPython).pattern;
///     const auto automaton =
///         zoo::make_token_automaton(pattern, session, zoo::token_bytes(*session.tokenizer));
///     options.constraint = zoo::make_text_constraint(automaton, session);

#include <memory>
#include <string>
#include <vector>

#include "models/generation/token_constraint.h"
#include "models/tasks/generate_session.h"
#include "tokenizer/chat/tool_calls.h"
#include "tokenizer/constraint/pattern.h"
#include "tokenizer/constraint/token_automaton.h"

namespace zoo {

/// The texts of a pattern in tokens with these bytes (token_bytes()); for any threads. Throws Error for none.
std::shared_ptr<const TokenAutomaton> make_token_automaton(const PatternPtr& pattern,
                                                           const GenerateSession& session,
                                                           std::vector<std::string> tokens);

/// The constraint of an automaton that was made for such a session. One thread may use it; begin() throws
/// FieldError naming max_new_tokens where too few of them are left for the shortest text.
std::shared_ptr<const TokenConstraint> make_text_constraint(std::shared_ptr<const TokenAutomaton> automaton,
                                                            const GenerateSession& session);

/// `bytes`, token_bytes() of the session's tokenizer, with the texts of special tokens that mark calls.
std::vector<std::string> tool_token_bytes(const GenerateSession& session, const ToolCallFormat& format,
                                          std::vector<std::string> bytes);

/// A constraint that begins where the answer calls a tool (a lazy grammar): any text, but once the format's
/// trigger is written, only a text of the automaton, which is tool_call_pattern()'s, from its beginning on.
/// An answer that ends for want of tokens may end inside of a call. One thread may use it.
std::shared_ptr<const TokenConstraint> make_tool_constraint(std::shared_ptr<const TokenAutomaton> automaton,
                                                            const GenerateSession& session,
                                                            const ToolCallFormat& format);

}  // namespace zoo
