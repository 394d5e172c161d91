#pragma once

#include <initializer_list>
#include <span>

#include <nlohmann/json_fwd.hpp>

#include "apps/serve/endpoints/endpoints.h"
#include "apps/serve/generation_call.h"
#include "apps/serve/writing_reply.h"

namespace zoo {

/// What a chat request wants of tools, as OpenAI's fields `tools`, `tool_choice` and `parallel_tool_calls`.
struct ToolUse {
  std::shared_ptr<const nlohmann::ordered_json> tools;  // for the chat template; null: none
  std::optional<ToolCallFormat> format;                 // null: calls are not recognised and stay in the text
  bool named = false;                                   // the request names the function
};

/// Sets the constraint of the answer, if it can call: a call that is begun, or demanded, has arguments that
/// the tool's parameters allow; an answer without a call is one that the request allows. Throws
/// ApiError naming the field.
ToolUse read_tools(RequestFields& fields, WritingRequest& writing);

/// Makes arguments, which clients send as JSON text, what the template wants. Throws ApiError.
void prepare_tool_calls(nlohmann::ordered_json& message, const std::string& place, const WritingModel& model);

/// A chat request, with OpenAI's fields of /v1/chat/completions.
struct ChatCompletion : WritingAnswer {
  ToolUse tools;
};

/// What becomes of a length that the context does not leave.
enum class TooLong { kRefused, kClipped, kUnread };

/// Reads it. Throws ApiError naming the field.
std::shared_ptr<const ChatCompletion> read_chat(ServerState& state, RequestFields& fields,
                                                TooLong too_long = TooLong::kRefused);

/// OpenAI's entries for the tokens of a text.
nlohmann::ordered_json logprobs_of(std::span<const ScoredToken> tokens, const WritingAnswer& answer);

/// The call of a tool in an assistant's message.
nlohmann::ordered_json tool_call(const std::string& id, const std::string& name,
                                 nlohmann::ordered_json arguments);
/// An id for it of nine signs, as Mistral's templates demand.
inline std::string new_call_id() { return new_reply_id("").substr(0, 9); }

/// A text of an answer, or a call of a tool with its arguments so far.
struct ChatPart {
  bool is_call = false;
  std::string id, name, text;
  std::vector<ScoredToken> scores;  // of the text, if the request asks for them

  /// Whether it is no call with arguments that were cut: those are nothing to act on.
  bool is_whole() const;
};

/// The form that another API gives to a chat's answer. A whole answer is what its events add up to.
struct ChatDialect : StreamWords {
  void add(std::size_t row, const std::string& text, const ScoredToken* token) final;
  void end(std::size_t row, RowEnd ended, std::string_view stop) final;
  bool close(std::int64_t count) final;

  /// These add events: of the last part, after the answer.
  virtual void open_part() = 0;
  virtual void add_text(const std::string& text) = 0;
  virtual void close_part() = 0;
  virtual void finish() = 0;
  virtual nlohmann::ordered_json whole() const = 0;

  std::shared_ptr<const ChatCompletion> chat;
  std::optional<ToolCallReader> reader;  // none: calls are not recognised
  std::shared_ptr<GenerationCall> call;
  std::vector<ChatPart> parts;
  std::vector<ScoredToken> scores;  // of the text that is added next
  std::int64_t new_tokens = 0;
  std::optional<RowEnd> reason;  // none before the end
  std::string stopped;           // the text from the stop string on

 private:
  void add_piece(const ToolCallPiece& piece);
};

/// Names of the same field in an API and in /v1/chat/completions. Parts of names begin with a dot.
using FieldNames = std::vector<std::pair<std::string, std::string>>;

/// The fields whose values are the same. The chat checks them.
nlohmann::ordered_json renamed_fields(RequestFields& fields, const FieldNames& names);

/// Reads the chat that a request of another API became. Throws ApiError with that API's names.
std::shared_ptr<const ChatCompletion> read_chat(ServerState& state, nlohmann::ordered_json fields,
                                                const FieldNames& names, TooLong too_long);

/// Answers it on the way of /v1/chat/completions.
WebReply answer_in_dialect(ApiCall& call, nlohmann::ordered_json fields, const FieldNames& names,
                           std::shared_ptr<ChatDialect> dialect, TooLong too_long = TooLong::kRefused);

/// The value at a name of an object; null if there is none, or no object.
nlohmann::ordered_json member(const nlohmann::ordered_json& object, const std::string& name);
/// The text at a name of an object. Throws ApiError naming both, such as "messages[0].role".
std::string text_in(const nlohmann::ordered_json& object, const std::string& name, const std::string& place);
/// A text, or the texts of a list of parts of these types. Throws ApiError for a part of another type.
std::string text_of_parts(const nlohmann::ordered_json& content, const std::string& place,
                          std::initializer_list<const char*> types);
[[noreturn]] void refuse_type(const std::string& place, const std::string& type);
/// The field `tools` of functions without a level between, whose parameters are called `schema`.
nlohmann::ordered_json flat_tools(RequestFields& fields, const std::string& type, const char* schema);

}  // namespace zoo
