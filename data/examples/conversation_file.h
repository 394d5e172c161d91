#pragma once

/// @file
/// Use:
///
///     zoo::FileColumns names;
///     for (const auto& conversation : zoo::parse_conversations(text, "chats.jsonl", names))
///       std::cout << conversation.line << ": " << conversation.messages.size() << " messages\n";

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "data/examples/file_columns.h"

namespace zoo {

/// A conversation with at least one message of the assistant, as chat templates read it.
struct Conversation {
  std::int64_t line = 0;            // counted from 1
  nlohmann::ordered_json messages;  // objects with `role`, and `content` or `tool_calls`
  nlohmann::ordered_json tools;     // a list, or null
};

/// Reads a .jsonl file whose lines are conversations, each in one of the shapes
///   {"messages": [{"role": "user", "content": …}, …]}, with "tools" where there are any (OpenAI, TRL)
///   {"conversations": [{"from": "human", "value": …}, …]} (ShareGPT)
///   {"instruction": …, "input": …, "output": …} (Alpaca; the input stands below the instruction)
///   {"prompt": …, "completion": …}, texts or lists of messages (TRL)
/// and "system" beside the last three. `names` has the names in the file, and receives the ignored ones.
/// Throws Error naming file and line for another file or shape, and for a conversation without an assistant.
std::vector<Conversation> parse_conversations(std::string_view text, const std::string& name,
                                              FileColumns& names);

}  // namespace zoo
