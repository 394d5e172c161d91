#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/generation/generate.h"
#include "models/generation/logits_rules.h"

namespace zoo {

/// A token and the model's log-probability of it, before any filter.
struct ScoredToken {
  TokenId id = 0;
  double log_probability = 0;
  std::vector<std::pair<TokenId, double>> likeliest;  // the most probable ids, best first; as asked for
};

/// Reason why a row has ended: an end token, a complete constraint or `row_ends`; max_new_tokens; the
/// request.
enum class RowEnd { kStop, kLength, kCancelled };

/// Prompts that a ContinuousBatch continues with the same options, and the callbacks for what comes of it,
/// which run on the thread of step(). Row p * samples + s is sample s of prompt p, as if generate() were
/// given each prompt `samples` times.
struct BatchRequest {
  std::vector<TokenIds> prompts;
  std::int64_t samples = 1;  // rows of a prompt, which is read once; at most the number of slots
  GenerationOptions options;
  bool only_prompt = false;               // write no token, whatever max_new_tokens says
  std::optional<std::int64_t> likeliest;  // log-probabilities are wanted, and so many of the most probable
  bool scores_prompt = false;             // of the prompt's tokens, too
  std::atomic<bool> cancelled = false;    // set by any thread: the rows leave before the next step

  /// Scores of a prompt's tokens after its first one; only with scores_prompt.
  std::function<void(std::size_t prompt, const std::vector<ScoredToken>& scores)> on_prompt;
  std::function<void(std::size_t row, const ScoredToken& token)> on_token;
  std::function<void(std::size_t row, RowEnd end)> on_end;
  std::function<void(const std::string& message)> on_failure;  // instead of the ends that are missing
};

/// Continuous batching (Yu et al., 2022, "Orca", section 3.1): rows of different requests share each step of
/// one DecodingSession. A request enters between steps, in the order of arrival; a prompt is read in pieces,
/// so that rows that write do not wait for a long one; a row that has ended leaves. In float32 a request's
/// ids are those of generate() alone, whatever else is in the batch.
///
/// submit() may be called by any thread, the rest by one. For decoders: an encoder-decoder is refused.
class ContinuousBatch {
 public:
  struct Options {
    std::int64_t slots = 8;       // rows at once
    std::int64_t context = 1024;  // tokens of a row, prompt included; the KV cache holds slots * context
    std::int64_t piece = 64;      // tokens of prompts that a step reads while other rows write
    std::size_t queue = 64;       // requests that wait
  };

  /// `model` must outlive the batch. Throws Error for an encoder-decoder and for options out of range.
  ContinuousBatch(DecodingModel& model, const Options& options);
  ~ContinuousBatch();

  /// False if the queue is full. Throws Error as generate() does, and if a row would exceed the context or a
  /// request needs more slots than there are.
  bool submit(std::shared_ptr<BatchRequest> request);

  /// Adds a token to each row, or reads a piece of a prompt. False if there is nothing to do.
  bool step();

  const Options& options() const { return options_; }
  std::size_t waiting() const;                              // requests that have not entered
  std::size_t rows() const { return running_; }             // rows of the last step
  std::int64_t prompt_tokens() const { return read_; }      // tokens of prompts read since the beginning
  std::int64_t written_tokens() const { return written_; }  // tokens chosen since the beginning

 private:
  struct Work;
  struct Row;
  using Tokens = std::vector<TokenIds>;

  void check(const BatchRequest& request) const;
  void drop_cancelled();
  bool writes() const;
  std::int64_t most_scored() const;
  std::int64_t free_slots() const;
  std::shared_ptr<Work> next_work() const;
  void enter(std::shared_ptr<Work> work);
  Tokens next_tokens();
  void read();
  void score_prompts(const at::Tensor& logits, const Tokens& tokens);
  at::Tensor repeat_rows(const at::Tensor& logits);
  void write(const at::Tensor& logits);
  void write_rows(Work& work, const at::Tensor& logits, const std::vector<std::int64_t>& rows);
  void end(Row& row, RowEnd reason);
  void fail(Work& work, const std::string& message);
  void fail_all(const std::string& message);
  void begin_session();
  void keep_running_rows();

  DecodingModel& model_;
  Options options_;
  std::unique_ptr<DecodingSession> session_;
  std::vector<Row> rows_;  // in the order of the session's; without any, the session keeps an empty row

  mutable std::mutex mutex_;
  std::deque<std::shared_ptr<Work>> queue_;  // works with prompts that have not entered; guarded by mutex_
  std::atomic<std::size_t> running_ = 0;
  std::atomic<std::int64_t> read_ = 0, written_ = 0;
};

}  // namespace zoo
