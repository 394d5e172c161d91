#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "apps/serve/api_error.h"
#include "apps/serve/generation_call.h"
#include "apps/serve/web/web_server.h"
#include "models/tasks/generate_session.h"

namespace zoo {

/// An answer to a request, with what each of its JSON objects has.
struct WritingAnswer {
  std::string id, object, model;
  std::int64_t created = std::time(nullptr);
  WritingRequest writing;

  const Tokenizer& tokenizer() const { return *writing.session->tokenizer; }
  /// False for special tokens, which are in no text.
  bool is_in_text(TokenId id) const;
  /// What a token adds to a text, a space included; of a special token its name. Perhaps part of a character.
  std::string bytes_of(TokenId id) const;
  nlohmann::ordered_json envelope(nlohmann::ordered_json choices) const;
  nlohmann::ordered_json chunk(nlohmann::ordered_json choice) const;  // of a stream
};

/// All that a row has written.
struct WrittenRow {
  std::string text;  // what a stream's parts add up to
  std::vector<ScoredToken> tokens, prompt_scores;
  RowEnd end = RowEnd::kStop;
};

/// "stop" or "length", as OpenAI names the reason why a row has ended.
inline const char* finish_reason(RowEnd end) { return end == RowEnd::kLength ? "length" : "stop"; }

/// What an endpoint writes into a stream: each function adds to the events, which are then sent.
struct StreamWords {
  virtual ~StreamWords() = default;
  /// Before the first token of any row.
  virtual void open() {}
  /// `text` may be empty: a token without visible text, or one that may begin a stop string.
  virtual void add(std::size_t row, const std::string& text, const ScoredToken* token) = 0;
  /// `stop` is the rest of the text from a stop string on; empty: none has ended it.
  virtual void end(std::size_t row, RowEnd reason, std::string_view stop) = 0;
  /// After all rows, and of an error. False: OpenAI's usage or error and "[DONE]" are sent.
  virtual bool close(std::int64_t) { return false; }
  virtual bool fail(const ApiError&) { return false; }

  std::vector<nlohmann::ordered_json> events;
};

/// Server-sent events of the answer's call; one with a "type" is named by it. An error after the beginning is
/// an event, too, unless the request does not stream: then it is thrown.
WebReply stream_of(std::shared_ptr<const WritingAnswer> answer, std::shared_ptr<GenerationCall> call,
                   std::shared_ptr<StreamWords> words);

/// Words in OpenAI's form: a whole answer is an object with the choice of each row.
struct ChoiceWords : StreamWords {
  virtual nlohmann::ordered_json choice_of(std::size_t row, const WrittenRow& written) = 0;
};

/// The answer to a request: those events if it streams, else that object.
WebReply reply_of(const std::shared_ptr<const WritingAnswer>& answer, const WritingPlace& place,
                  std::shared_ptr<ChoiceWords> words);

/// An id such as "cmpl-1f…", unique to this process.
std::string new_reply_id(const std::string& prefix);

/// The bytes of one token decoded by itself.
std::string bytes_of_token(TokenId id, const Tokenizer& tokenizer);

}  // namespace zoo
