#pragma once

#include "apps/training/batches/encode_examples.h"
#include "data/examples/conversation_file.h"
#include "tokenizer/chat/chat_format.h"

namespace zoo {

/// Conversations: the tokens that the assistant writes are their own labels, the others -100. An example of
/// which the limit leaves no such token is left out, and so is a conversation that encode_chat() refuses.
std::vector<Example> encode_conversations(const std::vector<ConversationRecord>& conversations,
                                          const ChatFormat& format, const Tokenizer& tokenizer,
                                          const std::string& name, EncodeLimits& limits);

/// The same of answers to a prompt: of a pair the chosen one, then the rejected one. Pairs are left out where
/// the limit leaves an answer no token, or both the same.
std::vector<Example> encode_preferences(const std::vector<Preference>& preferences, const ChatFormat& format,
                                        const Tokenizer& tokenizer, const std::string& name,
                                        EncodeLimits& limits);

}  // namespace zoo
