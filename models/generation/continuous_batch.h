#pragma once

/// @file
/// Use:
///
///     zoo::ContinuousBatch batch(decoder, {.slots = 8, .context = 512});  // of a DecodingModel
///     const auto request = std::make_shared<zoo::BatchRequest>();
///     request->prompts = {ids};
///     request->on_token = [](std::size_t, const zoo::ScoredToken& token) { std::cout << token.id << "\n"; };
///     for (bool works = batch.submit(request); works;) works = batch.step();

#include <atomic>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/generation/generate.h"
#include "models/generation/token_loop.h"

namespace zoo {

/// A token and the model's log-probability of it, before any filter.
struct ScoredToken {
  TokenId id = 0;
  double log_probability = 0;
  std::vector<std::pair<TokenId, double>> likeliest;  // the most probable ids, best first
};

/// Why a row has ended: an end token, a complete constraint or `row_ends`; max_new_tokens; the request.
enum class RowEnd { kStop, kLength, kCancelled };

/// Prompts that a ContinuousBatch continues with the same options, with callbacks, which run on the thread of
/// step(). Row p * samples + s is sample s of prompt p, as if generate() were given each prompt so often.
struct BatchRequest {
  std::vector<TokenIds> prompts;
  /// Rows per prompt. The prompt is read once if enough slots are free, else again for rows that enter later.
  std::int64_t samples = 1;
  GenerationOptions options;
  std::size_t adapter = 0;                // of the model (DecodingSession::adapt)
  bool only_prompt = false;               // generate no token, whatever max_new_tokens is
  std::optional<std::int64_t> likeliest;  // log-probabilities, and this many of the most probable ids
  bool scores_prompt = false;             // also for the prompt's tokens
  std::atomic<bool> cancelled = false;    // any thread may set it: the rows leave before the next step

  /// Scores of a prompt's tokens after its first one; only with scores_prompt.
  std::function<void(std::size_t prompt, const std::vector<ScoredToken>& scores)> on_prompt;
  /// Number of a prompt's tokens that were not read because the session held them.
  std::function<void(std::size_t prompt, std::int64_t tokens)> on_reuse;
  std::function<void(std::size_t row, const ScoredToken& token)> on_token;
  std::function<void(std::size_t row, RowEnd end)> on_end;
  /// Instead of on_end for the remaining rows. Unless the request is at fault, the machine lacks something.
  std::function<void(const std::string& message, bool is_its_fault)> on_failure;
};

struct BatchRow;
struct BatchWork;

/// Scores of the last prompts that were scored. A later prompt that begins alike need not read these tokens.
class ScoredPrompts {
 public:
  /// The scores of `tokens` after the first one, as far as a kept prompt with equal scores begins like them.
  std::vector<ScoredToken> beginning(const BatchRequest& request, const TokenIds& tokens) const;
  /// Keeps those of a row that has read its prompt; the oldest go.
  void keep(const BatchRow& row);

 private:
  struct Kept {
    std::size_t adapter;
    std::optional<std::int64_t> likeliest;
    TokenIds tokens;
    std::vector<ScoredToken> scores;
    std::size_t numbers() const {
      return scores.size() * (1 + static_cast<std::size_t>(likeliest.value_or(0)));
    }
  };

  std::deque<Kept> all_;
  std::size_t numbers_ = 0;
};

/// Continuous batching (Yu et al., 2022, "Orca", section 3.1): rows of different requests share each step of
/// one DecodingSession. A request enters between steps, in the order of arrival; a prompt is read in pieces,
/// so that generating rows do not wait for a long one; a row that has ended leaves. The beginning of a prompt
/// that the session still holds, of a running or an ended row, is not read again; of a prompt that is scored,
/// only as far as its scores are kept. In float32, a request's ids equal those of generate(), whatever else
/// is in the batch.
///
/// Any thread may call submit(); one thread calls the rest. Decoders only.
class ContinuousBatch {
 public:
  struct Options {
    std::int64_t slots = 8;       // rows at once
    std::int64_t context = 1024;  // tokens of a row, prompt included; the KV cache holds slots * context
    /// Tokens of prompts that a step reads while other rows generate; as many again for every four requests
    /// that a free slot awaits, up to 512.
    std::int64_t piece = 64;
    std::size_t queue = 64;  // requests that wait
    /// KV cache beyond the slots' own for ended rows, with which later prompts begin; the oldest go first.
    std::size_t held_bytes = std::size_t{512} << 20;
  };

  /// `model` must outlive the batch. Throws Error for an encoder-decoder and for options out of range.
  ContinuousBatch(DecodingModel& model, const Options& options);
  ~ContinuousBatch();

  /// False if the queue is full. Throws Error as generate() does, and if a row would exceed the context.
  bool submit(std::shared_ptr<BatchRequest> request);

  /// Adds a token to each row, or reads a piece of a prompt. False if there is nothing to do.
  bool step();

  /// Writes what the session holds of prompts and answers to a file, and reads it in another process, so that
  /// they are not read again. `mark` names, in a line, all that it depends on: model, formats, instruction
  /// set. load() is called before the first step, and gives false for a file with another mark. Both throw
  /// Error, as a session that cannot hold does; load() for a file that is damaged or of another kind.
  void save(const std::filesystem::path& path, const std::string& mark) const;
  bool load(const std::filesystem::path& path, const std::string& mark);

  const Options& options() const { return options_; }
  std::size_t waiting() const;                              // requests that have not entered
  std::size_t rows() const { return running_; }             // rows of the last step
  std::int64_t prompt_tokens() const { return read_; }      // tokens of prompts read since the beginning
  std::int64_t reused_tokens() const { return reused_; }    // tokens of prompts that were not read again
  std::int64_t written_tokens() const { return written_; }  // tokens chosen since the beginning

 private:
  using Tokens = std::vector<TokenIds>;

  void check(const BatchRequest& request) const;
  void drop_cancelled();
  std::int64_t prompt_tokens_at_once() const;
  std::int64_t free_slots() const;
  std::shared_ptr<BatchWork> next_work() const;
  void enter(std::shared_ptr<BatchWork> work);
  bool is_being_scored(const BatchWork& work) const;
  Tokens next_tokens();
  void read();
  at::Tensor repeat_rows(const at::Tensor& logits);
  void write(const at::Tensor& logits);
  void fail(BatchWork& work, const std::exception& error);
  void fail_all(const std::exception& error);
  void begin_session();
  void keep_running_rows();

  DecodingModel& model_;
  Options options_;
  std::unique_ptr<DecodingSession> session_;
  ScoredPrompts scored_;
  std::vector<BatchRow> rows_;  // in the session's order; without rows, the session has an empty one

  mutable std::mutex mutex_;
  std::deque<std::shared_ptr<BatchWork>> queue_;  // that have prompts left to enter; guarded by mutex_
  std::atomic<std::size_t> running_ = 0;
  std::atomic<std::int64_t> read_ = 0, reused_ = 0, written_ = 0;
};

/// A request in a ContinuousBatch, and the state that its rows share.
struct BatchWork {
  /// Throws Error for options out of range.
  BatchWork(std::shared_ptr<BatchRequest> given, std::int64_t vocab_size);

  std::size_t rows() const { return request->prompts.size() * static_cast<std::size_t>(request->samples); }

  std::shared_ptr<BatchRequest> request;
  LogitsRules rules;
  TokenSampler sampler;
  std::int64_t first_state;  // of the constraint
  std::size_t entered = 0;   // rows
  bool failed = false;
};

/// A row of the session. While it reads its prompt, it represents several samples.
struct BatchRow {
  std::shared_ptr<BatchWork> work;
  std::size_t number = 0;  // in the request, of the first sample
  std::int64_t samples = 1;
  TokenIds tokens, new_ids;
  std::size_t given = 0, read = 0;  // tokens of the prompt; those that the session has read
  std::int64_t state = 0;           // of the constraint
  std::vector<ScoredToken> scores;  // of the prompt
  bool was_read = false, ended = false;

  bool reads() const { return !was_read; }
  bool reads_and_scores() const { return reads() && work->request->scores_prompt; }
  std::int64_t unread() const { return static_cast<std::int64_t>(tokens.size() - read); }

  /// Adds the scores of the tokens that follow those just read, by logits [T, V]; at the end calls on_prompt.
  void score_prompt(const at::Tensor& logits);

  /// Reports once that the row, or all samples that it represents, has ended.
  void end(RowEnd reason);
};

/// Chooses tokens for a request's rows by logits [rows, V], and ends rows. Throws Error if none is allowed.
void write_tokens(BatchWork& work, const std::vector<BatchRow*>& rows, const at::Tensor& logits);

}  // namespace zoo
