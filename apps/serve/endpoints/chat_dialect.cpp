#include "apps/serve/endpoints/chat_dialect.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "data/base/json.h"
#include "tokenizer/text/utf8.h"

namespace zoo {

using nlohmann::ordered_json;

namespace {

// The error with the API's own name of the field.
ApiError renamed(const ApiError& error, const FieldNames& names) {
  std::string name = error.param, message = error.what();
  for (const auto& [own, theirs] : names) {
    const std::size_t place = name.find(theirs);
    if (place == 0 || (theirs.front() == '.' && place != std::string::npos))
      name.replace(place, theirs.size(), own);
  }
  const std::string quoted = "'" + error.param + "'";
  if (const std::size_t place = message.find(quoted); place != std::string::npos)
    message.replace(place, quoted.size(), "'" + name + "'");
  return {error.status, message, name, error.code};
}

}  // namespace

void ChatDialect::add_piece(const ToolCallPiece& piece) {
  const bool is_text = piece.kind == ToolCallPiece::Kind::kText;
  const bool is_name = piece.kind == ToolCallPiece::Kind::kName;
  if (is_text && piece.text.empty()) return;
  if (is_name || (is_text && (parts.empty() || parts.back().is_call))) {
    if (!parts.empty()) close_part();
    parts.push_back({.is_call = is_name, .id = new_call_id(), .name = is_name ? piece.text : ""});
    open_part();
  }
  if (!is_text) scores.clear();  // of a call's tokens
  if (is_name) return;
  ChatPart& part = parts.back();
  part.text += piece.text;
  add_text(piece.text);
  part.scores.insert(part.scores.end(), scores.begin(), scores.end());
  scores.clear();
}

// The one row's text becomes the parts of the answer.
void ChatDialect::add(std::size_t, const std::string& text, const ScoredToken* token) {
  if (token != nullptr && chat->is_in_text(token->id)) scores.push_back(*token);
  const ToolCallPiece plain{.text = text};
  for (const ToolCallPiece& piece : reader ? reader->push(text) : std::vector{plain}) add_piece(piece);
}

void ChatDialect::end(std::size_t, RowEnd ended, std::string_view stop) {
  if (reader)
    for (const ToolCallPiece& piece : reader->finish()) add_piece(piece);
  reason = ended;
  stopped = stop;
  if (!parts.empty()) close_part();
}

bool ChatDialect::close(std::int64_t count) {
  new_tokens = count;
  finish();
  return true;
}

bool ChatPart::is_whole() const { return !is_call || ordered_json::accept(text); }

ordered_json renamed_fields(RequestFields& fields, const FieldNames& names) {
  ordered_json chat = ordered_json::object();
  for (const auto& [own, name] : names) {
    const ordered_json* value = own.front() == '.' ? nullptr : fields.get(own);
    if (value != nullptr) chat[name] = *value;
  }
  return chat;
}

std::shared_ptr<const ChatCompletion> read_chat(ServerState& state, ordered_json fields,
                                                const FieldNames& names, TooLong too_long) {
  try {
    RequestFields chat(std::make_shared<const ordered_json>(std::move(fields)));
    return read_chat(state, chat, too_long);
  } catch (const ApiError& error) {
    throw renamed(error, names);
  }
}

WebReply answer_in_dialect(ApiCall& call, ordered_json fields, const FieldNames& names,
                           std::shared_ptr<ChatDialect> dialect, TooLong too_long) {
  dialect->chat = read_chat(call.state, std::move(fields), names, too_long);
  const auto& chat = dialect->chat;
  if (chat->tools.format) dialect->reader.emplace(*chat->tools.format);
  dialect->call = std::make_shared<GenerationCall>(chat->writing, call.state.writing_place(call.request));
  WebReply reply = stream_of(chat, dialect->call, dialect);
  if (chat->writing.stream) return reply;
  reply.stream([](std::string_view) { return true; });
  return {.body = json_text(dialect->whole())};
}

ordered_json member(const ordered_json& object, const std::string& name) {
  return object.is_object() ? object.value(name, ordered_json()) : ordered_json();
}

std::string text_in(const ordered_json& object, const std::string& name, const std::string& place) {
  const ordered_json text = member(object, name);
  if (!text.is_string()) RequestFields::refuse(place + "." + name, "must be a text");
  return text.get<std::string>();
}

void refuse_type(const std::string& place, const std::string& type) {
  RequestFields::refuse(place, "of type '" + excerpt(type, 40) + "' is not supported here");
}

std::string text_of_parts(const ordered_json& content, const std::string& place,
                          std::initializer_list<const char*> types) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) RequestFields::refuse(place, "must be a text or a list of parts");
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const std::string at = place + "[" + std::to_string(i) + "]", type = text_in(content[i], "type", at);
    if (std::ranges::find(types, type) == types.end()) refuse_type(at, type);
    text += text_in(content[i], type == "refusal" ? type : "text", at);
  }
  return text;
}

ordered_json flat_tools(RequestFields& fields, const std::string& type, const char* schema) {
  const ordered_json* list = fields.get("tools");
  ordered_json tools = ordered_json::array();
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const ordered_json tool = list->is_array() ? (*list)[i] : ordered_json();
    const std::string place = "tools[" + std::to_string(i) + "]";
    if (!tool.is_object()) RequestFields::refuse(place, "must be an object in a list");
    if (const ordered_json given = member(tool, "type"); !given.is_null() && given != type)
      refuse_type(place, given.is_string() ? given.get<std::string>() : given.dump());
    ordered_json function = ordered_json::object();
    for (const auto& [own, name] : FieldNames{
             {"name", "name"}, {"description", "description"}, {schema, "parameters"}, {"strict", "strict"}})
      if (tool.contains(own)) function[name] = tool[own];
    tools.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return tools;
}

}  // namespace zoo
