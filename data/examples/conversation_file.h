#pragma once

/// @file
/// Use:
///
///     zoo::FileColumns names;
///     for (const auto& conversation : zoo::parse_conversations(text, "chats.jsonl", names))
///       std::cout << conversation.line << ": " << conversation.request->at("messages").size() << "\n";

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "data/examples/file_columns.h"

namespace zoo {

/// A conversation with at least one message of the assistant, as chat templates read it.
struct ConversationRecord {
  std::int64_t line = 0;   // counted from 1
  std::size_t prompt = 0;  // in this number of first messages nothing is learnt
  /// `messages`: objects with `role`, and `content` or `tool_calls`; `tools`: a list, or null.
  std::shared_ptr<const nlohmann::ordered_json> request;
};

/// Reads a .jsonl file whose lines are conversations, each in one of the shapes
///   {"messages": [{"role": "user", "content": …}, …]}, with "tools" where there are any (OpenAI, TRL)
///   {"conversations": [{"from": "human", "value": …}, …]} (ShareGPT)
///   {"instruction": …, "input": …, "output": …} (Alpaca; the input stands below the instruction)
///   {"prompt": …, "completion": …}, texts or lists of messages (TRL), whose completion alone is learnt
/// and "system" beside the last three. `names` has the names in the file, and receives the ignored ones.
/// Throws Error naming file and line for another file or shape, and where there is nothing to learn.
std::vector<ConversationRecord> parse_conversations(std::string_view text, const std::string& name,
                                                    FileColumns& names);

/// Answers to one prompt, as requests like those of ConversationRecord.
struct Preference {
  std::int64_t line = 0;   // counted from 1
  std::size_t prompt = 0;  // number of messages before the answer
  /// Null is the one that a line with a label lacks.
  std::shared_ptr<const nlohmann::ordered_json> chosen, rejected;
};

/// Reads a .jsonl file whose lines have one of the shapes of TRL, all of them the same
///   {"prompt": …, "chosen": …, "rejected": …}
///   {"prompt": …, "completion": …, "label": true or false}
/// with texts or lists of messages, and "system" and "tools" beside them. Lists of whole conversations may
/// stand under chosen and rejected: what both begin with is the prompt. Throws as above, and for no answer.
std::vector<Preference> parse_preferences(std::string_view text, const std::string& name, FileColumns& names);

}  // namespace zoo
