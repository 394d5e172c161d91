#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "models/tasks/generate_session.h"
#include "tokenizer/chat/chat_format.h"

namespace zoo {

/// A conversation in the terminal: the messages so far, answered by a model.
class ChatSession {
 public:
  /// `request` holds messages and perhaps tools, as ChatFormat::prompt takes them. All else must outlive the
  /// session.
  ChatSession(DecodingModel& model, const GenerateSession& session, const ChatFormat& format,
              nlohmann::ordered_json& request, GenerationOptions options, bool color);

  /// Answers a line, or obeys it if it is a command such as /reset. A line that ends in a backslash goes on
  /// with the next. False if it ends the session.
  bool take(const std::string& line);

 private:
  void obey(const std::string& command);
  void answer(const std::string& text);
  void set_system(const std::string& text);
  /// The ids of the prompt that leave room for an answer. Drops the oldest turns until they do.
  TokenIds fitting_ids();

  DecodingModel& model_;
  const GenerateSession& session_;
  const ChatFormat& format_;
  nlohmann::ordered_json& request_;
  GenerationOptions options_;
  bool color_;
  std::string unfinished_;
};

}  // namespace zoo
