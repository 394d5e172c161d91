#pragma once

/// @file
/// Use:
///
///     const zoo::ChatTokens tokens = zoo::encode_chat(zoo::ChatFormat::read(directory), tokenizer, request);
///     for (std::size_t i = 0; i < tokens.ids.size(); ++i)
///       if (tokens.answers[i]) std::cout << tokens.ids[i] << " is learnt\n";

#include <vector>

#include "tokenizer/chat/chat_format.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

/// The ids of a conversation, and which of them the assistant writes, the end of its turns included.
struct ChatTokens {
  TokenIds ids;
  std::vector<bool> answers;
};

/// Encodes a request of ChatFormat::prompt(). The assistant writes what the template has between
/// {% generation %} and {% endgeneration %}, as return_assistant_tokens_mask of transformers does it; without
/// them, what the whole conversation has of a message of the assistant, from what asks for it to what ends it
/// in a conversation that goes so far. Throws Error if one of them stands otherwise in the whole, so that the
/// part cannot be told, and if the conversation begins with the assistant. What the assistant writes in the
/// first `prompt` messages does not count.
ChatTokens encode_chat(const ChatFormat& format, const Tokenizer& tokenizer,
                       const nlohmann::ordered_json& request, std::size_t prompt = 0);

}  // namespace zoo
