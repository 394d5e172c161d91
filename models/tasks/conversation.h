#pragma once

/// @file
/// Use:
///
///     zoo::TextGenerator model("runs/chat/final");
///     zoo::Conversation conversation = model.conversation();
///     conversation.set_system("Answer in one sentence.");
///     std::cout << model.reply(conversation, "Who was Moses?", model.settings()) << "\n";

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/layers/transformer_config.h"
#include "tokenizer/chat/chat_format.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

struct ChatMessage {
  std::string role;  // system, user or assistant
  std::string content;
  bool operator==(const ChatMessage&) const = default;
};

/// The messages between a user and a model, in the form of the model's chat template.
class Conversation {
 public:
  explicit Conversation(ChatFormat format);
  /// With further variables of the template, such as tools, as ChatFormat::prompt() takes them.
  Conversation(ChatFormat format, const nlohmann::ordered_json& variables);

  /// Sets the first message, which tells the model how to answer; an empty text removes it.
  void set_system(const std::string& text);
  /// Forgets all messages except the system's.
  void reset();

  /// What the model reads, and how many of the oldest messages were dropped to leave room for an answer.
  struct Prompt {
    TokenIds ids;
    std::size_t dropped = 0;
  };

  /// The model that answers.
  struct Reader {
    const Tokenizer& tokenizer;
    std::int64_t context;         // most tokens of a prompt and its answer
    std::int64_t max_new_tokens;  // of an answer
    std::function<std::string(const Prompt&)> answer;
  };

  /// Adds a message of the user and the model's answer, which it returns. The oldest turns are dropped until
  /// the prompt leaves room for max_new_tokens or a quarter of the context, whichever is smaller. If anything
  /// throws, nothing has changed. Throws Error for a message that is too long by itself or not UTF-8.
  const std::string& ask(const std::string& message, const Reader& reader);

  const ChatFormat& format() const { return format_; }
  const std::vector<ChatMessage>& messages() const { return messages_; }

 private:
  std::string prompt() const;
  std::size_t drop_turn();
  std::size_t turns_begin() const { return !messages_.empty() && messages_[0].role == "system" ? 1 : 0; }

  ChatFormat format_;
  std::shared_ptr<const nlohmann::ordered_json> variables_;
  std::vector<ChatMessage> messages_;
};

/// Reader::context of a model: `context` tokens; 0: as many as it knows positions of; at most `max_length`.
std::int64_t conversation_context(const TransformerConfig& config, std::int64_t context,
                                  std::optional<std::int64_t> max_length);

}  // namespace zoo
