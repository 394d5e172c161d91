#include "data/examples/conversation_file.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "data/base/field_error.h"
#include "data/base/json_text.h"
#include "data/base/lines.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

const std::vector<std::string> kKeys{"messages",    "tools", "conversations", "prompt", "completion",
                                     "instruction", "input", "output",        "system"};

// ShareGPT's names of roles, and the templates'.
constexpr auto kRoles =
    std::to_array<std::pair<std::string_view, std::string_view>>({{"human", "user"},
                                                                  {"user", "user"},
                                                                  {"gpt", "assistant"},
                                                                  {"assistant", "assistant"},
                                                                  {"system", "system"},
                                                                  {"tool", "tool"},
                                                                  {"observation", "tool"}});

// A line's object, and what its messages report.
class LineReader {
 public:
  LineReader(const Line& line, const std::string& name, FileColumns& names)
      : line_(line), name_(name), object_(names.read_ordered_object(line, name, kKeys)) {}

  Conversation read() {
    ordered_json messages = ordered_json::array();
    if (has("system") && !has("messages")) add(messages, "system", text("system"));
    if (has("messages")) {
      add_all(messages, "messages");
    } else if (has("conversations")) {
      add_shared(messages);
    } else if (has("instruction")) {
      const std::string input = has("input") ? text("input") : "";
      add(messages, "user", text("instruction") + (input.empty() ? "" : "\n\n" + input));
      add(messages, "assistant", text("output"));
    } else if (has("prompt")) {
      add_part(messages, "prompt", "user");
      add_part(messages, "completion", "assistant");
    } else {
      refuse(
          "expected 'messages', 'conversations', 'instruction' and 'output', or 'prompt' and 'completion'");
    }
    if (std::ranges::none_of(messages, [](const auto& message) { return message["role"] == "assistant"; }))
      refuse("no message is the assistant's, so there is nothing to learn");
    return {line_.number, std::make_shared<const ordered_json>(
                              ordered_json{{"messages", std::move(messages)},
                                           {"tools", has("tools") ? object_["tools"] : ordered_json()}})};
  }

 private:
  bool has(const char* key) const { return object_.contains(key) && !object_[key].is_null(); }

  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(name_, ", line ", line_.number, ": ", why);
  }

  std::string text(const std::string& key) const {
    if (!has(key.c_str()))
      throw FieldError(name_, ", line ", line_.number, ": '", key, "' is missing; ", Field{"columns"}, " ",
                       key, "=NAME says what the file calls it");
    if (!object_[key].is_string()) refuse("'" + key + "' must be a text");
    return object_[key].get<std::string>();
  }

  static bool has_answer(const ordered_json& message) {
    const auto filled = [&](const char* key) {
      return message.contains(key) && !message[key].is_null() && !message[key].empty() && message[key] != "";
    };
    return filled("content") || filled("tool_calls");
  }

  static void add(ordered_json& messages, const std::string& role, const std::string& content) {
    messages.push_back({{"role", role}, {"content", content}});
  }

  void add_all(ordered_json& messages, const std::string& key) const {
    if (!object_[key].is_array()) refuse("'" + key + "' must be a list of messages");
    for (const ordered_json& message : object_[key]) {
      if (!message.is_object() || !message.contains("role") || !message["role"].is_string())
        refuse("'" + key + "' holds " + json_text(message) + ": expected messages with a 'role'");
      if (message["role"] == "assistant" && !has_answer(message))
        refuse("a message of the assistant is empty: there is nothing to learn");
      messages.push_back(message);
    }
  }

  void add_part(ordered_json& messages, const std::string& key, const std::string& role) const {
    if (object_.contains(key) && object_[key].is_array()) return add_all(messages, key);
    add(messages, role, text(key));
  }

  void add_shared(ordered_json& messages) const {
    if (!object_["conversations"].is_array()) refuse("'conversations' must be a list of messages");
    const ordered_json& list = object_["conversations"];
    if (!list.empty() && list[0].is_object() && list[0].contains("role"))
      return add_all(messages, "conversations");
    for (const ordered_json& message : list) {
      const bool good = message.is_object() && message.contains("from") && message["from"].is_string() &&
                        message.contains("value") && message["value"].is_string();
      if (!good) refuse("'conversations' holds " + json_text(message) + ": expected 'from' and 'value'");
      const auto from = message["from"].get<std::string>();
      const auto* role = std::ranges::find(kRoles, from, &decltype(kRoles)::value_type::first);
      if (role == kRoles.end()) refuse("unknown role '" + from + "'; expected human, gpt, system or tool");
      add(messages, std::string(role->second), message["value"].get<std::string>());
    }
  }

  const Line& line_;
  const std::string& name_;
  const ordered_json object_;
};

}  // namespace

std::vector<Conversation> parse_conversations(std::string_view text, const std::string& name,
                                              FileColumns& names) {
  if (!name.ends_with(".jsonl")) throw Error(name, ": conversations are read from a .jsonl file");
  std::vector<Conversation> conversations;
  for (const Line& line : lines_of(text)) conversations.push_back(LineReader(line, name, names).read());
  if (conversations.empty()) throw Error(name, " is empty: expected conversations");
  return conversations;
}

}  // namespace zoo
