#include <nlohmann/json.hpp>

#include "apps/serve/api_error.h"
#include "apps/serve/endpoints/chat_dialect.h"
#include "data/base/json.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

// clang-format off
const FieldNames kResponseFields{
    {"model", "model"}, {"max_output_tokens", "max_completion_tokens"}, {"temperature", "temperature"},
    {"top_p", "top_p"}, {"seed", "seed"}, {"stream", "stream"}, {"stream_options", "stream_options"},
    {"parallel_tool_calls", "parallel_tool_calls"}, {"tool_choice", "tool_choice"}, {"input", "messages"},
    {"text.format", "response_format"}, {"top_logprobs", "top_logprobs"}, {".", ".function."}};

// What an answer has besides its output; the request's fields replace these.
constexpr const char* kResponse = R"({"id": "", "object": "response", "created_at": 0, "status": "in_progress",
    "error": null, "incomplete_details": null, "instructions": null, "max_output_tokens": null, "model": "",
    "output": [], "parallel_tool_calls": true, "previous_response_id": null, "store": true, "temperature": null,
    "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "top_logprobs": 0,
    "top_p": null, "truncation": "disabled", "usage": null, "metadata": {}})";
// clang-format on

// OpenAI's Responses.
struct ResponsesAnswer : ChatDialect {
  ordered_json response = ordered_json::parse(kResponse);
  ordered_json items = ordered_json::array();     // that it answers, of earlier turns too
  ordered_json messages = ordered_json::array();  // the same as a chat's
  ConversationStore* store = nullptr;
  std::size_t told = 0;

  void tell(const std::string& type, const ordered_json& fields) {
    events.push_back({{"type", type}, {"sequence_number", told++}});
    events.back().update(fields);
  }

  // An event of the last part.
  void tell_part(const std::string& type, const ordered_json& fields) {
    const ChatPart& part = parts.back();
    tell("response." + type, {{"item_id", item_id(part)}, {"output_index", parts.size() - 1}});
    if (!part.is_call) events.back()["content_index"] = 0;
    events.back().update(fields);
  }

  void tell_item(const std::string& type) {
    tell(type, {{"output_index", parts.size() - 1}, {"item", item(parts.back())}});
    if (type == "response.output_item.added") events.back()["item"]["status"] = "in_progress";
  }

  void open() override {
    response.update({{"id", new_reply_id("resp_")}, {"created_at", chat->created}, {"model", chat->model}});
    for (const char* type : {"response.created", "response.in_progress"})
      tell(type, {{"response", response}});
  }

  void open_part() override {
    tell_item("response.output_item.added");
    if (!parts.back().is_call) tell_part("content_part.added", {{"part", content(parts.back())}});
  }

  void add_text(const std::string& text) override {
    if (parts.back().is_call) return tell_part("function_call_arguments.delta", {{"delta", text}});
    tell_part("output_text.delta", {{"delta", text}, {"logprobs", logprobs_of(scores, *chat)}});
  }

  void close_part() override {
    const ChatPart& part = parts.back();
    if (part.is_call) {
      tell_part("function_call_arguments.done", {{"name", part.name}, {"arguments", part.text}});
    } else {
      tell_part("output_text.done", {{"text", part.text}, {"logprobs", logprobs_of(part.scores, *chat)}});
      tell_part("content_part.done", {{"part", content(part)}});
    }
    tell_item("response.output_item.done");
  }

  void finish() override {
    response["status"] = status();
    if (reason == RowEnd::kLength) response["incomplete_details"] = {{"reason", "max_output_tokens"}};
    for (const ChatPart& part : parts) response["output"].push_back(item(part));
    const std::int64_t read = call->prompt_tokens();
    response["usage"] = {
        {"input_tokens", read},
        {"input_tokens_details", {{"cached_tokens", call->reused_tokens()}, {"cache_write_tokens", 0}}},
        {"output_tokens", new_tokens},
        {"output_tokens_details", {{"reasoning_tokens", 0}}},
        {"total_tokens", read + new_tokens}};
    if (response["store"] == true) store->put({response["id"], json_text(response), json_text(items)});
    tell("response." + std::string(status()), {{"response", response}});
  }

  bool fail(const ApiError& error) override {
    const ordered_json told = parse_ordered_json(error.json())["error"];
    tell("error", {{"code", told["code"]}, {"message", told["message"]}, {"param", told["param"]}});
    return true;
  }

  ordered_json whole() const override { return response; }

  // To the messages.
  void add_call(const ChatPart& part) {
    if (messages.empty() || messages.back()["role"] != "assistant")
      messages.push_back({{"role", "assistant"}, {"content", ""}});
    messages.back()["tool_calls"].push_back(tool_call(part.id, part.name, part.text));
  }

  const char* status() const { return reason == RowEnd::kLength ? "incomplete" : "completed"; }

  static std::string item_id(const ChatPart& part) { return (part.is_call ? "fc_" : "msg_") + part.id; }

  ordered_json content(const ChatPart& part) const {
    return {{"type", "output_text"},
            {"text", part.text},
            {"annotations", ordered_json::array()},
            {"logprobs", logprobs_of(part.scores, *chat)}};
  }

  ordered_json item(const ChatPart& part) const {
    const bool is_cut = part.is_call ? !part.is_whole() : &part == &parts.back() && reason == RowEnd::kLength;
    ordered_json item{{"id", item_id(part)}, {"status", is_cut ? "incomplete" : "completed"}};
    if (part.is_call)
      item.update(
          {{"type", "function_call"}, {"call_id", part.id}, {"name", part.name}, {"arguments", part.text}});
    else
      item.update(
          {{"type", "message"}, {"role", "assistant"}, {"content", ordered_json::array({content(part)})}});
    return item;
  }
};

void add_item(ResponsesAnswer& answer, const ordered_json& item, const std::string& place) {
  const bool has_type = item.is_object() && item.contains("type");
  const std::string type = has_type ? text_in(item, "type", place) : "message";
  const auto text = [&](const std::string& name) {
    return text_of_parts(member(item, name), place + "." + name, {"input_text", "output_text", "refusal"});
  };
  if (type == "message") {
    answer.messages.push_back({{"role", text_in(item, "role", place)}, {"content", text("content")}});
  } else if (type == "function_call") {
    std::string arguments = text_in(item, "arguments", place);
    if (arguments.empty()) arguments = "{}";
    if (!parse_ordered_json(arguments).is_object())
      RequestFields::refuse(place + ".arguments", "must be the JSON text of an object");
    answer.add_call({true, text_in(item, "call_id", place), text_in(item, "name", place), arguments});
  } else if (type == "function_call_output") {
    answer.messages.push_back(
        {{"role", "tool"}, {"tool_call_id", text_in(item, "call_id", place)}, {"content", text("output")}});
  } else {
    refuse_type(place, type);
  }
}

// An item of a request as a list of items has it.
ordered_json listed(ordered_json item) {
  const bool is_message = !item.contains("type") || item["type"] == "message";
  if (is_message) item["type"] = "message";
  if (!member(item, "id").is_string()) item["id"] = new_reply_id(is_message ? "msg_" : "fc_");
  item["status"] = "completed";
  if (is_message && item["content"].is_string()) {
    const char* type = item["role"] == "assistant" ? "output_text" : "input_text";
    item["content"] = ordered_json::array({{{"type", type}, {"text", std::move(item["content"])}}});
  }
  return item;
}

// The items of a kept conversation, its answer's too.
ordered_json conversation_of(const ConversationStore::Kept& kept) {
  ordered_json items = parse_ordered_json(kept.input);
  const ordered_json answer = parse_ordered_json(kept.answer);
  const std::size_t given = items.size();
  for (const ordered_json& item : answer["output"])  // a cut call is left out
    if (item["type"] == "message" || item["status"] == "completed") items.push_back(item);
  // Templates whose roles alternate need an empty answer, too.
  if (items.size() == given) items.push_back(listed({{"role", "assistant"}, {"content", ""}}));
  return items;
}

// The conversation before this answer.
void read_input(RequestFields& fields, ResponsesAnswer& answer) {
  if (const auto id = fields.text("previous_response_id")) {
    const auto known = answer.store->get(*id);
    if (!known)
      throw ApiError(404, "'previous_response_id' names no response that is kept here",
                     "previous_response_id", "previous_response_not_found");
    answer.items = conversation_of(*known);
    for (const ordered_json& item : answer.items) add_item(answer, item, "previous_response_id");
  }
  const ordered_json* input = fields.get("input");
  if (input == nullptr) fields.refuse_missing("input");
  if (!input->is_string() && !input->is_array())
    RequestFields::refuse("input", "must be a text or a list of items");
  const ordered_json given =
      input->is_array() ? *input : ordered_json::array({{{"role", "user"}, {"content", *input}}});
  for (std::size_t i = 0; i < given.size(); ++i) {
    add_item(answer, given[i], "input[" + std::to_string(i) + "]");
    answer.items.push_back(listed(given[i]));
  }
}

void read_include(RequestFields& fields, ordered_json& chat) {
  const ordered_json* include = fields.get("include");
  for (const ordered_json& one : include != nullptr ? *include : ordered_json()) {
    if (one == "message.output_text.logprobs") chat["logprobs"] = true;
    else if (one != "reasoning.encrypted_content")  // which no answer has
      RequestFields::refuse("include", "can only have message.output_text.logprobs");
  }
  if (chat.contains("logprobs")) return;
  if (chat.contains("top_logprobs") && chat["top_logprobs"] != 0)
    RequestFields::refuse("top_logprobs", "needs 'include': [\"message.output_text.logprobs\"]");
  chat.erase("top_logprobs");
}

// Fields that have one value here.
void refuse_other_values(RequestFields& fields) {
  if (fields.flag("background").value_or(false)) RequestFields::refuse("background", "must be false");
  if (fields.text("truncation").value_or("disabled") != "disabled")
    RequestFields::refuse("truncation", "must be disabled");
  RequestFields reasoning = fields.object("reasoning");
  if (reasoning.text("effort").value_or("none") != "none")
    RequestFields::refuse("reasoning.effort", "must be none or null");
  reasoning.refuse_others();
}

// A choice of tools that is an object.
ordered_json chosen_tools(const ordered_json& choice) {
  const std::string type = text_in(choice, "type", "tool_choice");
  if (type == "function") return tool_call("", text_in(choice, "name", "tool_choice"), nullptr);
  if (type != "allowed_tools") refuse_type("tool_choice", type);
  RequestFields fields(std::make_shared<const ordered_json>(choice));
  const ordered_json* mode = fields.get("mode");
  return {{"type", type},
          {type,
           {{"mode", mode == nullptr ? ordered_json() : *mode},
            {"tools", flat_tools(fields, "function", "parameters")}}}};
}

// The request as one of /v1/chat/completions.
ordered_json chat_of(RequestFields& fields, ResponsesAnswer& answer) {
  ordered_json chat = renamed_fields(fields, kResponseFields);
  read_input(fields, answer);
  chat["messages"] = answer.messages;
  if (const auto instructions = fields.text("instructions"))
    chat["messages"].insert(chat["messages"].begin(),
                            ordered_json{{"role", "system"}, {"content", *instructions}});
  chat["tools"] = flat_tools(fields, "function", "parameters");
  if (const ordered_json* choice = fields.get("tool_choice"); choice != nullptr && choice->is_object()) {
    chat["tool_choice"] = chosen_tools(*choice);
  }
  if (const ordered_json* text = fields.get("text")) {
    if (!text->is_object()) RequestFields::refuse("text", "must be an object");
    for (const auto& [name, value] : text->items()) {
      if (name == "verbosity" && (value.is_string() || value.is_null())) continue;  // no template knows it
      if (name != "format") RequestFields::refuse("text." + name, "is not supported here");
      ordered_json& format = chat["response_format"] = value;
      if (text_in(format, "type", "text.format") != "json_schema") continue;
      format.erase("type");
      format = {{"type", "json_schema"}, {"json_schema", std::exchange(format, nullptr)}};
    }
  }
  read_include(fields, chat);
  refuse_other_values(fields);
  for (const char* name :
       {"instructions", "max_output_tokens", "parallel_tool_calls", "previous_response_id", "reasoning",
        "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "metadata"})
    if (const ordered_json* given = fields.get(name)) answer.response[name] = *given;
  answer.response["store"] = fields.flag("store").value_or(true);
  fields.ignore({"user", "service_tier", "prompt_cache_key", "safety_identifier", "prompt_cache_retention"});
  fields.refuse_others();
  return chat;
}

}  // namespace

WebReply answer_response(ApiCall& call) {
  const auto answer = std::make_shared<ResponsesAnswer>();
  answer->store = &call.state.conversations;
  ordered_json chat = chat_of(call.fields, *answer);
  return answer_in_dialect(call, std::move(chat), kResponseFields, answer);
}

}  // namespace zoo
