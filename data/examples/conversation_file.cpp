#include "data/examples/conversation_file.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "data/base/ending.h"
#include "data/base/field_error.h"
#include "data/base/json.h"
#include "data/base/lines.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

const std::vector<std::string> kKeys{"messages",    "tools", "conversations", "prompt", "completion",
                                     "instruction", "input", "output",        "system"};

const std::vector<std::string> kPreferenceKeys{"prompt", "chosen", "rejected", "completion",
                                               "label",  "system", "tools"};

// ShareGPT's names of roles, and the templates'.
using RoleNames = std::pair<std::string_view, std::string_view>;
constexpr RoleNames kRoles[]{{"human", "user"},          {"user", "user"},     {"gpt", "assistant"},
                             {"assistant", "assistant"}, {"system", "system"}, {"tool", "tool"},
                             {"observation", "tool"}};

// A line's object, and what its messages report.
class LineReader {
 public:
  LineReader(const Line& line, FileColumns& names, const std::vector<std::string>& keys)
      : line_(line), object_(names.read_ordered_object(line, keys)) {}

  ConversationRecord read() {
    ordered_json messages = ordered_json::array();
    std::size_t prompt = 0;
    const auto is_assistant = [](const auto& message) { return message["role"] == "assistant"; };
    if (has("system")) add(messages, "system", text("system"));
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
      if (std::ranges::any_of(messages, is_assistant)) prompt = messages.size();
      append(messages, filled_part("completion"));
    } else {
      refuse(
          "expected 'messages', 'conversations', 'instruction' and 'output', or 'prompt' and 'completion'");
    }
    const auto is_system = [](const auto& message) { return message["role"] == "system"; };
    if (has("system") && std::ranges::count_if(messages, is_system) > 1)
      refuse("'system' stands beside messages with a system message of their own; leave one out");
    if (std::none_of(messages.begin() + static_cast<std::ptrdiff_t>(prompt), messages.end(), is_assistant))
      refuse("no message " + std::string(prompt > 0 ? "of 'completion' " : "") +
             "is the assistant's, so there is nothing to learn");
    return {line_.number, prompt, request(std::move(messages))};
  }

  Preference read_preference() const {
    const bool pair = has("chosen") || has("rejected");
    if (!pair && !has("completion"))
      refuse("expected 'prompt' with 'chosen' and 'rejected', or with 'completion' and 'label'");
    ordered_json prompt = ordered_json::array();
    if (has("system")) add(prompt, "system", text("system"));
    if (!pair) {
      if (!has("label") || !object_["label"].is_boolean()) refuse("'label' must be true or false");
      add_part(prompt, "prompt", "user");
      const auto only = with_answer(prompt, answer("completion"));
      const bool good = object_["label"].get<bool>();
      return {line_.number, prompt.size(), good ? only : nullptr, good ? nullptr : only};
    }
    ordered_json chosen = answer("chosen"), rejected = answer("rejected");
    if (chosen[0]["role"] == "assistant") {
      add_part(prompt, "prompt", "user");
    } else {
      while (chosen.size() > 1 && rejected.size() > 1 && chosen[0] == rejected[0]) {
        prompt.push_back(chosen[0]);
        chosen.erase(chosen.begin());
        rejected.erase(rejected.begin());
      }
      if (prompt.empty()) refuse("'chosen' and 'rejected' begin with no prompt that is the same");
      const ordered_json said = has("prompt") ? object_["prompt"] : prompt;
      if (said != (said.is_string() ? prompt.back().value("content", ordered_json()) : prompt))
        refuse("'prompt' is not what 'chosen' and 'rejected' begin with; leave it out");
    }
    return {line_.number, prompt.size(), with_answer(prompt, chosen), with_answer(prompt, rejected)};
  }

 private:
  bool has(const char* key) const { return object_.contains(key) && !object_[key].is_null(); }

  std::shared_ptr<const ordered_json> request(ordered_json messages) const {
    return std::make_shared<const ordered_json>(ordered_json{
        {"messages", std::move(messages)}, {"tools", has("tools") ? object_["tools"] : ordered_json()}});
  }

  static void append(ordered_json& messages, const ordered_json& others) {
    messages.insert(messages.end(), others.begin(), others.end());
  }

  std::shared_ptr<const ordered_json> with_answer(ordered_json messages, const ordered_json& answer) const {
    append(messages, answer);
    return request(std::move(messages));
  }

  // The messages of an answer, which are not empty.
  ordered_json filled_part(const char* key) const {
    ordered_json messages = ordered_json::array();
    add_part(messages, key, "assistant");
    if (messages.empty() || !has_answer(messages.back())) refuse("'" + std::string(key) + "' is empty");
    return messages;
  }

  // The same, of which the last is the assistant's.
  ordered_json answer(const char* key) const {
    ordered_json messages = filled_part(key);
    if (messages.back()["role"] != "assistant")
      refuse("the last message of '" + std::string(key) + "' is not the assistant's");
    return messages;
  }

  [[noreturn]] void refuse(const std::string& why) const { throw Error(line_, ": ", why); }

  std::string text(const std::string& key) const {
    if (!has(key.c_str()))
      throw FieldError(line_, ": '", key, "' is missing; ", Field{"columns"}, " ", key,
                       "=NAME says what the file calls it");
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
      const auto* role = std::ranges::find(kRoles, from, &RoleNames::first);
      if (role == std::end(kRoles))
        refuse("unknown role '" + from + "'; expected human, gpt, system or tool");
      add(messages, std::string(role->second), message["value"].get<std::string>());
    }
  }

  const Line& line_;
  const ordered_json object_;
};

}  // namespace

std::vector<ConversationRecord> parse_conversations(std::string_view text, const std::string& name,
                                                    FileColumns& names) {
  if (ending_of(name) != ".jsonl")
    throw FieldError(name, ": conversations are read from a .jsonl file; ", Field{"task"}, " lm reads texts");
  std::vector<ConversationRecord> conversations;
  for (const Line& line : lines_of(text, name))
    conversations.push_back(LineReader(line, names, kKeys).read());
  if (conversations.empty()) throw Error(name, " is empty: expected conversations");
  return conversations;
}

std::vector<Preference> parse_preferences(std::string_view text, const std::string& name,
                                          FileColumns& names) {
  if (ending_of(name) != ".jsonl") throw Error(name, ": preferences are read from a .jsonl file");
  std::vector<Preference> all;
  const auto is_pair = [](const Preference& each) { return each.chosen && each.rejected; };
  for (const Line& line : lines_of(text, name)) {
    all.push_back(LineReader(line, names, kPreferenceKeys).read_preference());
    if (is_pair(all.back()) != is_pair(all.front()))
      throw Error(line, ": expected the shape of the first line, ",
                  is_pair(all.front()) ? "'chosen' and 'rejected'" : "'completion' and 'label'");
  }
  if (all.empty()) throw Error(name, " is empty: expected prompts with chosen and rejected answers");
  return all;
}

}  // namespace zoo
