#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "apps/serve/compute_thread.h"
#include "apps/serve/sampling_fields.h"
#include "apps/serve/server_metrics.h"
#include "apps/serve/web/web_server.h"

namespace zoo {

/// News of a request that is being written.
struct WritingEvent {
  enum class Kind { kPrompt, kToken, kEnd };
  Kind kind = Kind::kToken;
  std::size_t row = 0;  // or the number of the prompt
  ScoredToken token;
  RowEnd end = RowEnd::kStop;
  std::vector<ScoredToken> scores;  // of the prompt
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
  GenerationCall(WritingRequest request, ContinuousBatch& batch, WritingPlace place);
  ~GenerationCall();
  GenerationCall(const GenerationCall&) = delete;
  GenerationCall& operator=(const GenerationCall&) = delete;

  /// Waits; nothing once all rows have ended. Throws ApiError if the request fails, and as
  /// RequestWatch::check().
  std::optional<WritingEvent> next();

  const WritingRequest& request() const { return request_; }
  std::size_t rows() const { return rows_; }
  std::int64_t prompt_tokens() const;

 private:
  struct Mailbox;

  WritingRequest request_;
  WritingPlace place_;
  std::shared_ptr<Mailbox> mailbox_;
  std::size_t rows_ = 0, ended_ = 0;
  bool has_token_ = false;
};

}  // namespace zoo
