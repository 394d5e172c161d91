#include "models/tasks/conversation.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "models/generation/decoding_batch.h"
#include "tokenizer/text/utf8.h"

namespace zoo {

using nlohmann::ordered_json;

Conversation::Conversation(ChatFormat format) : Conversation(std::move(format), ordered_json::object()) {}

Conversation::Conversation(ChatFormat format, const ordered_json& variables)
    : format_(std::move(format)), variables_(std::make_shared<const ordered_json>(variables)) {}

void Conversation::set_system(const std::string& text) {
  require_utf8(text, "the system message");
  if (turns_begin() == 1) messages_.erase(messages_.begin());
  if (!text.empty()) messages_.insert(messages_.begin(), {.role = "system", .content = text});
}

void Conversation::reset() { messages_.resize(turns_begin()); }

const std::string& Conversation::ask(const std::string& message, const Reader& reader) {
  require_utf8(message, "the message");
  std::vector<ChatMessage> before = messages_;
  try {
    messages_.push_back({.role = "user", .content = message});
    const std::int64_t room = std::min(reader.max_new_tokens, std::max<std::int64_t>(1, reader.context / 4));
    Prompt asked{.ids = reader.tokenizer.encode(prompt())};
    while (std::ssize(asked.ids) > reader.context - room) {
      const std::size_t dropped = drop_turn();
      if (dropped == 0)
        throw Error("the message makes a prompt of ", asked.ids.size(), " tokens; the model reads ",
                    reader.context, ", and the answer takes ", room);
      asked = {.ids = reader.tokenizer.encode(prompt()), .dropped = asked.dropped + dropped};
    }
    messages_.push_back({.role = "assistant", .content = reader.answer(asked)});
    return messages_.back().content;
  } catch (...) {
    messages_ = std::move(before);
    throw;
  }
}

std::string Conversation::prompt() const {
  ordered_json request = *variables_;
  request["messages"] = ordered_json::array();
  for (const ChatMessage& each : messages_)
    request["messages"].push_back({{"role", each.role}, {"content", each.content}});
  if (!request.contains("add_generation_prompt")) request["add_generation_prompt"] = true;
  return format_.prompt(request);
}

// Drops the oldest turn: the messages before the second one of the user. The last turn stays; returns 0 then.
std::size_t Conversation::drop_turn() {
  const auto first = messages_.begin() + static_cast<std::ptrdiff_t>(turns_begin());
  const auto next = std::find_if(first + 1, messages_.end(),
                                 [](const ChatMessage& message) { return message.role == "user"; });
  if (next == messages_.end()) return 0;
  const auto dropped = static_cast<std::size_t>(next - first);
  messages_.erase(first, next);
  return dropped;
}

std::int64_t conversation_context(const TransformerConfig& config, std::int64_t context,
                                  std::optional<std::int64_t> max_length) {
  std::int64_t limit = context_limit(config, context);
  // Rotary positions have no limit, but training has shown the model no more than these.
  if (context == 0 && config.max_positions > 0) limit = std::min(limit, config.max_positions);
  return std::min(limit, max_length.value_or(limit));
}

}  // namespace zoo
