#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/tasks/text_constraint.h"
#include "tokenizer/chat/tool_calls.h"

namespace zoo {

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
