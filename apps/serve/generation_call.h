#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

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
  const std::atomic<bool>& stopping;
  double seconds = 600;
};

/// A request in a batch, as the thread that answers its client sees it. Its end takes the rows out of the
/// batch.
class GenerationCall {
 public:
  /// Submits it. Throws ApiError: 429 if the queue is full, 400 for what the batch refuses.
  GenerationCall(WritingRequest request, ContinuousBatch& batch, const WritingPlace& place,
                 std::function<bool()> client_left);
  ~GenerationCall();
  GenerationCall(const GenerationCall&) = delete;
  GenerationCall& operator=(const GenerationCall&) = delete;

  /// Waits; nothing once all rows have ended. Throws ApiError if the request fails, takes too long or the
  /// server stops, and ClientLeft.
  std::optional<WritingEvent> next();

  const WritingRequest& request() const { return request_; }
  std::size_t rows() const { return rows_; }
  std::int64_t prompt_tokens() const;

  struct ClientLeft {};

 private:
  struct Mailbox;

  WritingRequest request_;
  WritingPlace place_;
  std::function<bool()> client_left_;
  std::shared_ptr<Mailbox> mailbox_;
  std::size_t rows_ = 0, ended_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  bool has_token_ = false;
};

}  // namespace zoo
