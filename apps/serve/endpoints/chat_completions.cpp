#include <span>

#include <nlohmann/json.hpp>

#include "apps/serve/endpoints/chat_dialect.h"
#include "data/base/error.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostMessages = 4096;
constexpr std::int64_t kMostTopLogprobs = 20;

ordered_json messages_of(RequestFields& fields, const WritingModel& model) {
  const ordered_json* given = fields.get("messages");
  if (given == nullptr) fields.refuse_missing("messages");
  if (!given->is_array() || given->empty() || given->size() > kMostMessages)
    RequestFields::refuse("messages", "must be a list of at least one message");
  ordered_json messages = *given;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    ordered_json& message = messages[i];
    const std::string place = "messages[" + std::to_string(i) + "]";
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string())
      RequestFields::refuse(place, "must be an object with a 'role' and a 'content'");
    if (member(message, "tool_calls").empty()) message.erase("tool_calls");
    if (message["role"] == "assistant" && member(message, "refusal").is_string() &&
        member(message, "content").is_null())
      message["content"] = message["refusal"];
    const bool calls = message.contains("tool_calls");
    prepare_tool_calls(message, place, model);
    if (!calls && !message.contains("content")) RequestFields::refuse(place + ".content", "is missing");
    ordered_json& content = message["content"];
    if (content.is_array()) content = text_of_parts(content, place + ".content", {"text", "refusal"});
    // Templates are written for a text: many ask for its length, or split it.
    if (content.is_null() && (calls || message["role"] == "assistant")) content = "";
    if (!content.is_string())
      RequestFields::refuse(place + ".content", "must be a text or a list of parts of type text");
    if (message["role"] == "developer") message["role"] = "system";  // OpenAI's newer word
  }
  return messages;
}

// The inputs of the chat template.
ordered_json template_request(RequestFields& fields, const WritingModel& model, const ToolUse& use) {
  ordered_json request{{"messages", messages_of(fields, model)}, {"add_generation_prompt", true}};
  if (use.tools) request["tools"] = *use.tools;
  const ordered_json* more = fields.get("chat_template_kwargs");
  if (more == nullptr) return request;
  if (!more->is_object()) RequestFields::refuse("chat_template_kwargs", "must be an object");
  for (const auto& [name, value] : more->items()) {
    if (request.contains(name))
      RequestFields::refuse("chat_template_kwargs." + name, "is a field of its own");
    request[name] = value;
  }
  return request;
}

void read_logprobs(RequestFields& fields, BatchRequest& batch) {
  const bool wanted = fields.flag("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", 0, kMostTopLogprobs);
  if (top && !wanted) RequestFields::refuse("top_logprobs", "needs 'logprobs': true");
  if (wanted) batch.likeliest = top.value_or(0);
}

ordered_json scored(TokenId id, double value, const WritingAnswer& answer) {
  const std::string text = answer.bytes_of(id);
  const std::vector<unsigned char> bytes(text.begin(), text.end());
  return {{"token", replace_invalid_utf8(text)}, {"logprob", value}, {"bytes", bytes}};
}

ordered_json logprobs_json(std::span<const ScoredToken> tokens, const WritingAnswer& answer) {
  return {{"content", logprobs_of(tokens, answer)}, {"refusal", nullptr}};
}

const char* finish_reason_of(const ChatCompletion& chat, RowEnd end, const ToolCallReader* reader) {
  const bool called = reader != nullptr && reader->has_called() && end == RowEnd::kStop;
  return called && !chat.tools.named ? "tool_calls" : finish_reason(end);
}

ordered_json message_of(const std::string& content) {
  return {{"role", "assistant"}, {"content", content}, {"refusal", nullptr}};
}

// The message of a row that may call tools.
ordered_json message_with_calls(const std::string& text, ToolCallReader& reader) {
  std::string content;
  ordered_json calls = ordered_json::array();
  const auto add = [&](const std::vector<ToolCallPiece>& pieces) {
    for (const ToolCallPiece& piece : pieces) {
      if (piece.kind == ToolCallPiece::Kind::kText) content += piece.text;
      if (piece.kind == ToolCallPiece::Kind::kName) calls.push_back(tool_call(new_call_id(), piece.text, ""));
      if (piece.kind == ToolCallPiece::Kind::kArguments)
        calls.back()["function"]["arguments"].get_ref<std::string&>() += piece.text;
    }
  };
  add(reader.push(text));
  add(reader.finish());
  ordered_json message = message_of(content);
  if (calls.empty()) return message;
  if (content.empty()) message["content"] = nullptr;
  message["tool_calls"] = std::move(calls);
  return message;
}

// The change that a piece makes to a message.
ordered_json delta_of(const ToolCallPiece& piece) {
  if (piece.kind == ToolCallPiece::Kind::kText) return {{"content", piece.text}};
  ordered_json call{{"index", piece.call}};
  if (piece.kind == ToolCallPiece::Kind::kName) call.update(tool_call(new_call_id(), piece.text, ""));
  if (piece.kind == ToolCallPiece::Kind::kArguments) call["function"] = {{"arguments", piece.text}};
  return {{"tool_calls", ordered_json::array({std::move(call)})}};
}

struct ChatWords : ChoiceWords {
  explicit ChatWords(std::shared_ptr<const ChatCompletion> given) : chat(std::move(given)) {
    if (chat->tools.format) readers.assign(chat->writing.rows(), ToolCallReader(*chat->tools.format));
  }

  void open() override {
    for (std::size_t row = 0; row < chat->writing.rows(); ++row)
      tell(row, {{"role", "assistant"}, {"content", ""}});
  }

  void add(std::size_t row, const std::string& text, const ScoredToken* token) override {
    ordered_json logprobs;
    if (token != nullptr) logprobs = logprobs_json({token, 1}, *chat);
    std::vector<ToolCallPiece> pieces{{.text = text}};
    if (ToolCallReader* reader = reader_of(row)) pieces = reader->push(text);
    if (pieces.empty() && token != nullptr) pieces.emplace_back();
    for (const ToolCallPiece& piece : pieces) tell(row, delta_of(piece), std::exchange(logprobs, nullptr));
  }

  void end(std::size_t row, RowEnd ended, std::string_view) override {
    ToolCallReader* reader = reader_of(row);
    if (reader != nullptr)
      for (const ToolCallPiece& piece : reader->finish()) tell(row, delta_of(piece));
    tell(row, ordered_json::object(), nullptr, finish_reason_of(*chat, ended, reader));
  }

  ordered_json choice_of(std::size_t row, const WrittenRow& written) override {
    ToolCallReader* reader = reader_of(row);
    ordered_json message =
        reader != nullptr ? message_with_calls(written.text, *reader) : message_of(written.text);
    ordered_json logprobs;
    if (chat->writing.batch->likeliest) logprobs = logprobs_json(written.tokens, *chat);
    return {{"index", row},
            {"message", std::move(message)},
            {"logprobs", std::move(logprobs)},
            {"finish_reason", finish_reason_of(*chat, written.end, reader)}};
  }

  void tell(std::size_t row, ordered_json delta, ordered_json logprobs = nullptr,
            ordered_json reason = nullptr) {
    events.push_back(chat->chunk({{"index", row},
                                  {"delta", std::move(delta)},
                                  {"logprobs", std::move(logprobs)},
                                  {"finish_reason", std::move(reason)}}));
  }

  ToolCallReader* reader_of(std::size_t row) { return readers.empty() ? nullptr : &readers[row]; }

  std::shared_ptr<const ChatCompletion> chat;
  std::vector<ToolCallReader> readers;  // of the rows; none: calls are not recognised
};

}  // namespace

std::shared_ptr<const ChatCompletion> read_chat(ServerState& state, RequestFields& fields, TooLong too_long) {
  ServedModel& served = state.model_of(fields);
  const WritingModel& model = served.writer();
  if (!model.chat) served.refuse("does not chat: " + model.no_chat);
  ChatCompletion chat{{.id = new_reply_id("chatcmpl-"),
                       .object = "chat.completion",
                       .model = served.name,
                       .writing = read_writing_request(fields, served, model.chat_session)}};
  if (chat.writing.stream) chat.object += ".chunk";
  chat.tools = read_tools(fields, chat.writing);
  if (!chat.tools.format) constrain(chat.writing);
  ordered_json request = template_request(fields, model, chat.tools);
  read_logprobs(fields, *chat.writing.batch);
  const auto old_length = read_length(fields, "max_tokens");
  const auto length = read_length(fields, "max_completion_tokens");
  if (const ordered_json* kinds = fields.get("modalities");
      kinds != nullptr && *kinds != ordered_json::array({"text"}))
    RequestFields::refuse("modalities", "must be [\"text\"]");
  fields.refuse_others();
  try {
    const std::string prompt = model.chat->prompt(request);
    if (chat.tools.tools && !chat.tools.format && request.erase("tools") > 0 &&
        model.chat->prompt(request) == prompt)
      RequestFields::refuse("tools", "have no place in the chat template");
    chat.writing.batch->prompts = {chat.tokenizer().encode(prompt)};
  } catch (const Error& error) {
    RequestFields::refuse("messages", std::string("do not fit the chat template: ") + error.what());
  }
  if (chat.writing.batch->prompts[0].empty()) RequestFields::refuse("messages", "make an empty prompt");
  if (too_long != TooLong::kUnread)
    set_length(chat.writing, length ? length : old_length,
               length || !old_length ? "max_completion_tokens" : "max_tokens", state.options.most_new_tokens,
               /*clips=*/too_long == TooLong::kClipped);
  return std::make_shared<const ChatCompletion>(std::move(chat));
}

ordered_json logprobs_of(std::span<const ScoredToken> tokens, const WritingAnswer& answer) {
  ordered_json entries = ordered_json::array();
  for (const ScoredToken& token : tokens) {
    ordered_json entry = scored(token.id, token.log_probability, answer);
    entry["top_logprobs"] = ordered_json::array();
    for (const auto& [id, value] : token.likeliest)
      entry["top_logprobs"].push_back(scored(id, value, answer));
    entries.push_back(std::move(entry));
  }
  return entries;
}

ordered_json tool_call(const std::string& id, const std::string& name, ordered_json arguments) {
  return {
      {"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", std::move(arguments)}}}};
}

WebReply answer_chat_completion(ApiCall& call) {
  const auto chat = read_chat(call.state, call.fields);
  return reply_of(chat, call.state.writing_place(call.request), std::make_shared<ChatWords>(chat));
}

}  // namespace zoo
