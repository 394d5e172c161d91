#include <algorithm>

#include <nlohmann/json.hpp>

#include "apps/serve/api_error.h"
#include "apps/serve/endpoints/chat_dialect.h"
#include "data/base/json.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

// clang-format off
const FieldNames kMessageFields{
    {"model", "model"}, {"max_tokens", "max_tokens"}, {"temperature", "temperature"}, {"top_p", "top_p"},
    {"top_k", "top_k"}, {"seed", "seed"}, {"stream", "stream"}, {"stop_sequences", "stop"},
    {"output_config.format", "response_format"},
    {".input_schema", ".function.parameters"}, {".", ".function."}};
// clang-format on

// Anthropic's Messages.
struct MessagesAnswer : ChatDialect {
  std::string id = new_reply_id("msg_");
  std::vector<std::string> stops;

  void open() override { tell("message_start", {{"message", whole()}}); }
  void open_part() override { tell_part("start", {{"content_block", block(parts.back())}}); }
  void close_part() override { tell_part("stop", ordered_json::object()); }
  bool fail(const ApiError& error) override {
    events.push_back(anthropic_error(error.status, error.what()));
    return true;
  }

  void add_text(const std::string& text) override {
    const bool is_call = parts.back().is_call;
    tell_part("delta", {{"delta",
                         {{"type", is_call ? "input_json_delta" : "text_delta"},
                          {is_call ? "partial_json" : "text", text}}}});
  }

  void finish() override {
    tell("message_delta", {{"delta", stop_fields()}, {"usage", usage()}});
    tell("message_stop", ordered_json::object());
  }

  ordered_json whole() const override {
    ordered_json message{{"id", id}, {"type", "message"}, {"role", "assistant"}, {"model", chat->model}};
    message["content"] = ordered_json::array();
    for (const ChatPart& part : parts)
      if (part.is_whole()) message["content"].push_back(block(part));
    message.update(stop_fields());
    message["usage"] = usage();
    return message;
  }

  void tell(const char* type, const ordered_json& fields) {
    events.push_back({{"type", type}});
    events.back().update(fields);
  }

  void tell_part(const std::string& what, const ordered_json& fields) {
    tell(("content_block_" + what).c_str(), {{"index", parts.size() - 1}});
    events.back().update(fields);
  }

  static ordered_json block(const ChatPart& part) {
    if (!part.is_call) return {{"type", "text"}, {"text", part.text}};
    const ordered_json input = part.text.empty() ? ordered_json::object() : parse_ordered_json(part.text);
    return {{"type", "tool_use"}, {"id", part.id}, {"name", part.name}, {"input", input}};
  }

  ordered_json stop_fields() const {
    ordered_json fields{{"stop_reason", nullptr}, {"stop_sequence", nullptr}};
    if (!reason) return fields;
    const bool called = std::ranges::any_of(parts, &ChatPart::is_call);
    fields["stop_reason"] = *reason != RowEnd::kLength ? (called ? "tool_use" : "end_turn")
                            : chat->writing.clipped    ? "model_context_window_exceeded"
                                                       : "max_tokens";
    std::string_view found;  // of those that begin alike the shortest, which was complete first
    for (const std::string_view text : stops)
      if (stopped.starts_with(text) && !text.empty() && (found.empty() || text.size() < found.size()))
        found = text;
    if (!found.empty()) fields = {{"stop_reason", "stop_sequence"}, {"stop_sequence", found}};
    return fields;
  }

  ordered_json usage() const {
    return {{"input_tokens", call->prompt_tokens() - call->reused_tokens()},
            {"cache_creation_input_tokens", 0},
            {"cache_read_input_tokens", call->reused_tokens()},
            {"output_tokens", new_tokens}};
  }
};

// The text of a document with its title and context, a line or more each.
std::string document_text(const ordered_json& block, const std::string& place) {
  const ordered_json source = member(block, "source"), citations = member(block, "citations");
  const std::string type = text_in(source, "type", place + ".source");
  if (type != "text" && type != "content") refuse_type(place + ".source", type);
  if (citations.is_object() && citations.value("enabled", ordered_json(false)) != false)
    RequestFields::refuse(place + ".citations", "must not be enabled");
  std::string text;
  for (const char* name : {"title", "context"})
    if (!member(block, name).is_null()) text += text_in(block, name, place) + "\n";
  text += type == "text" ? text_in(source, "data", place + ".source")
                         : text_of_parts(member(source, "content"), place + ".source.content", {"text"});
  return text + "\n";
}

// A message as those of a chat, where results of tools are messages of their own.
void add_message(ordered_json& messages, const ordered_json& given, const std::string& place) {
  const std::string role = text_in(given, "role", place);
  if (role != "user" && role != "assistant" && role != "system")
    RequestFields::refuse(place + ".role", "must be user, assistant or system");
  const ordered_json empty{{"role", role}, {"content", ""}};
  ordered_json message = empty, content = member(given, "content");
  if (content.is_string()) content = ordered_json::array({{{"type", "text"}, {"text", content}}});
  if (!content.is_array()) RequestFields::refuse(place + ".content", "must be a text or a list of blocks");
  for (std::size_t i = 0; i < content.size(); ++i) {
    const ordered_json& block = content[i];
    const std::string at = place + ".content[" + std::to_string(i) + "]", type = text_in(block, "type", at);
    if (type == "text") {
      message["content"].get_ref<std::string&>() += text_in(block, "text", at);
    } else if (type == "document" && role == "user") {
      message["content"].get_ref<std::string&>() += document_text(block, at);
    } else if ((type == "thinking" || type == "redacted_thinking") && role == "assistant") {
      continue;  // no part of the conversation
    } else if (type == "tool_use" && role == "assistant") {
      const ordered_json input = member(block, "input");
      if (!input.is_object()) RequestFields::refuse(at + ".input", "must be an object");
      message["tool_calls"].push_back(tool_call(text_in(block, "id", at), text_in(block, "name", at), input));
    } else if (type == "tool_result" && role == "user") {
      if (message != empty) messages.push_back(std::exchange(message, empty));
      const ordered_json given = member(block, "content");
      const std::string text = given.is_null() ? "" : text_of_parts(given, at + ".content", {"text"});
      messages.push_back(
          {{"role", "tool"}, {"tool_call_id", text_in(block, "tool_use_id", at)}, {"content", text}});
      if (block.contains("is_error"))
        messages.back()["is_error"] = block["is_error"];  // for templates that show it
    } else {
      refuse_type(at, type);
    }
  }
  if (message != empty || messages.empty() || messages.back()["role"] != "tool") messages.push_back(message);
}

void read_messages(RequestFields& fields, ordered_json& chat) {
  const ordered_json* given = fields.get("messages");
  if (given == nullptr) fields.refuse_missing("messages");
  if (!given->is_array() || given->empty())
    RequestFields::refuse("messages", "must be a list of at least one message");
  ordered_json& messages = chat["messages"] = ordered_json::array();
  if (const ordered_json* system = fields.get("system"))
    messages.push_back({{"role", "system"}, {"content", text_of_parts(*system, "system", {"text"})}});
  for (std::size_t i = 0; i < given->size(); ++i)
    add_message(messages, (*given)[i], "messages[" + std::to_string(i) + "]");
  if (messages.back()["role"] == "assistant")
    RequestFields::refuse("messages", "must end with a user's: the beginning of an answer is not continued");
}

void read_tool_choice(RequestFields& fields, ordered_json& chat) {
  const ordered_json* choice = fields.get("tool_choice");
  if (choice == nullptr) return;
  const std::string type = text_in(*choice, "type", "tool_choice");
  if (type != "auto" && type != "any" && type != "tool" && type != "none")
    RequestFields::refuse("tool_choice.type", "must be auto, any, tool or none");
  chat["tool_choice"] = type == "any" ? "required" : type;
  if (type == "tool") chat["tool_choice"] = tool_call("", text_in(*choice, "name", "tool_choice"), nullptr);
  const ordered_json one = choice->value("disable_parallel_tool_use", ordered_json(false));
  if (!one.is_boolean())
    RequestFields::refuse("tool_choice.disable_parallel_tool_use", "must be true or false");
  chat["parallel_tool_calls"] = one == false;
}

void read_output_config(RequestFields& fields, ordered_json& chat) {
  RequestFields config = fields.object("output_config");
  if (config.get("effort") != nullptr) RequestFields::refuse("output_config.effort", "is not supported here");
  if (config.get("format") != nullptr) {
    RequestFields format = config.object("format");
    const ordered_json* schema = format.get("schema");
    if (format.text("type") != "json_schema" || schema == nullptr)
      RequestFields::refuse("output_config.format", "must be {\"type\": \"json_schema\", \"schema\": …}");
    format.refuse_others();
    chat["response_format"] = {{"type", "json_schema"}, {"json_schema", {{"schema", *schema}}}};
  }
  config.refuse_others();
}

// The request as one of /v1/chat/completions.
ordered_json chat_of(RequestFields& fields) {
  ordered_json chat = renamed_fields(fields, kMessageFields);
  read_messages(fields, chat);
  chat["tools"] = flat_tools(fields, "custom", "input_schema");
  read_tool_choice(fields, chat);
  read_output_config(fields, chat);
  if (const ordered_json* thinking = fields.get("thinking");
      thinking != nullptr && text_in(*thinking, "type", "thinking") != "disabled")
    RequestFields::refuse("thinking", "must be disabled");
  fields.ignore({"metadata", "service_tier", "cache_control"});
  fields.refuse_others();
  return chat;
}

}  // namespace

WebReply answer_message(ApiCall& call) {
  ordered_json chat = chat_of(call.fields);
  if (!chat.contains("max_tokens")) call.fields.refuse_missing("max_tokens");
  const auto dialect = std::make_shared<MessagesAnswer>();
  dialect->stops = call.fields.texts("stop_sequences", 16);
  return answer_in_dialect(call, std::move(chat), kMessageFields, dialect, TooLong::kClipped);
}

WebReply answer_message_count(ApiCall& call) {
  const auto chat = read_chat(call.state, chat_of(call.fields), kMessageFields, TooLong::kUnread);
  return {.body = json_text(ordered_json{{"input_tokens", chat->writing.batch->prompts[0].size()}})};
}

}  // namespace zoo
