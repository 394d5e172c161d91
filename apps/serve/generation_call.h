#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/serve/api_error.h"
#include "apps/serve/compute_thread.h"
#include "apps/serve/request_fields.h"
#include "apps/serve/served_model.h"
#include "apps/serve/server_metrics.h"
#include "apps/serve/web/web_server.h"

namespace zoo {

/// Texts of a prompt, as in OpenAI's API.
inline constexpr std::int64_t kMostSamples = 128;

/// The texts that a field of a request allows.
struct AllowedTexts {
  std::string field, key;  // key: a name for its automaton
  std::function<PatternPtr()> pattern;
};

/// How a request wants its text to be written.
struct WritingRequest {
  const WritingModel* model = nullptr;
  std::shared_ptr<GenerateSession> session;  // with the request's stop strings
  std::shared_ptr<BatchRequest> batch = std::make_shared<BatchRequest>();
  std::optional<AllowedTexts> allowed;  // the constraint to be
  bool stream = false, include_usage = false;
  std::size_t returned = 0;  // of each prompt's samples, those whose tokens are likeliest; 0: all
  bool clipped = false;      // to what the context leaves
  bool continues = false;    // the text goes on from the prompt's, instead of being one by itself

  std::size_t samples() const { return static_cast<std::size_t>(batch->samples); }
  std::size_t rows() const { return batch->prompts.size() * samples(); }
};

/// Reads the fields that /v1/completions and /v1/chat/completions share: how tokens are chosen and where a
/// text ends. A field that the request does not have is the checkpoint's default, then OpenAI's. The caller
/// sets the prompts and calls constrain() and set_length(). Throws ApiError naming the field.
WritingRequest read_writing_request(RequestFields& fields, const ServedModel& served,
                                    const GenerateSession& session);

/// The automaton of a constraint, which `name` names, from the model's last ones or made of the pattern.
/// Throws Error as make_token_automaton().
AutomatonCache::Automaton automaton_of(const WritingModel& model, const GenerateSession& session,
                                       const std::string& name, const std::function<PatternPtr()>& pattern);

/// Makes what the request allows its constraint. Throws ApiError naming the field.
void constrain(WritingRequest& request);

/// A number of new tokens; -1, which clients of llama.cpp and LM Studio send, is the number that fits.
std::optional<std::int64_t> read_length(RequestFields& fields, const std::string& name,
                                        std::int64_t least = 1);

/// Sets the number of new tokens: `given` by the field `name`, or, if none or -1 is, what the context leaves;
/// at most `most` unless that is 0. Throws ApiError if it does not fit, as OpenAI does:
/// context_length_exceeded; with `clips` only if the context leaves nothing.
void set_length(WritingRequest& request, std::optional<std::int64_t> given, const std::string& name,
                std::int64_t most, bool clips = false);

/// News of a request that is being written.
struct WritingEvent {
  enum class Kind { kPrompt, kToken, kEnd };
  Kind kind = Kind::kToken;
  std::size_t row = 0;  // or the number of the prompt
  ScoredToken token;
  RowEnd end = RowEnd::kStop;
  std::vector<ScoredToken> scores;  // of the prompt
  std::optional<ApiError> failure;  // of the request; the last event
};

/// Parts of the server that a generating request uses.
struct WritingPlace {
  ComputeThread& thread;
  ServerMetrics& metrics;
  RequestWatch watch;
};

/// A request in a batch, as the thread that answers its client sees it. Its end takes the rows out of the
/// batch.
class GenerationCall {
 public:
  /// Submits it. Throws ApiError: 429 if the queue is full, 400 for what the batch refuses.
  GenerationCall(WritingRequest request, WritingPlace place);
  ~GenerationCall();
  GenerationCall(const GenerationCall&) = delete;
  GenerationCall& operator=(const GenerationCall&) = delete;

  /// Waits; nothing once all rows have ended. Throws ApiError if the request fails, and as
  /// RequestWatch::check().
  std::optional<WritingEvent> next();

  const WritingRequest& request() const { return request_; }
  std::int64_t prompt_tokens() const;
  std::int64_t reused_tokens() const;  // of the prompts, so far: not read again

 private:
  struct Mailbox;

  WritingRequest request_;
  WritingPlace place_;
  std::shared_ptr<Mailbox> mailbox_;
  std::size_t ended_ = 0;
  bool has_token_ = false;
};

}  // namespace zoo
