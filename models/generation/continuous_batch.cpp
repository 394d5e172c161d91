#include "models/generation/continuous_batch.h"

#include <algorithm>

#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include "data/base/error.h"
#include "models/generation/decoding_batch.h"

namespace zoo {
namespace {

// Tokens of prompts that a step reads while no row writes.
constexpr std::int64_t kPieceAlone = 512;
// A step that scores prompts computes logits for every token; so many numbers at most, for each row.
constexpr std::int64_t kScoredLogits = std::int64_t{1} << 21;

std::int64_t count_of(const TokenIds& ids) {
  return static_cast<std::int64_t>(ids.size());
}

ScoredToken scored(const at::Tensor& log_probabilities, TokenId id, std::int64_t likeliest) {
  ScoredToken token{id, log_probabilities[id].item<double>(), {}};
  const auto [values, ids] = log_probabilities.topk(std::min(likeliest, log_probabilities.size(0)));
  for (std::int64_t i = 0; i < values.size(0); ++i)
    token.likeliest.emplace_back(ids[i].item<std::int64_t>(), values[i].item<double>());
  return token;
}

}  // namespace

// A request and what its rows share.
struct ContinuousBatch::Work {
  Work(std::shared_ptr<BatchRequest> given, std::int64_t vocab_size)
      : request(std::move(given)),
        rules(request->options, vocab_size),
        sampler(request->options.sampling, rows()),
        first_state(request->only_prompt ? 0 : rules.first_state()) {}

  std::size_t rows() const { return request->prompts.size() * static_cast<std::size_t>(request->samples); }

  std::shared_ptr<BatchRequest> request;
  LogitsRules rules;
  TokenSampler sampler;
  std::int64_t first_state;
  std::size_t entered = 0;  // prompts
  bool failed = false;
};

// A row of the session. While it reads its prompt it stands for all samples of it.
struct ContinuousBatch::Row {
  std::shared_ptr<Work> work;
  std::size_t number = 0;
  TokenIds tokens, new_ids;
  std::size_t given = 0, read = 0;
  std::int64_t state = 0;  // of the constraint
  std::vector<ScoredToken> scores;
  bool was_read = false, ended = false;

  bool reads() const { return !was_read; }
  std::int64_t unread() const { return static_cast<std::int64_t>(tokens.size() - read); }
};

ContinuousBatch::ContinuousBatch(DecodingModel& model, const Options& options)
    : model_(model), options_(options) {
  if (model.config().shape != Shape::kDecoder)
    throw Error("only a decoder's requests can share a batch, not an encoder-decoder's");
  if (options.slots < 1 || options.context < 1 || options.piece < 1)
    throw Error("a batch needs at least 1 slot, a context of 1 and pieces of 1, got ", options.slots, ", ",
                options.context, " and ", options.piece);
  options_.context = std::min(options.context, context_limit(model.config()));
  begin_session();
}

ContinuousBatch::~ContinuousBatch() = default;

void ContinuousBatch::begin_session() {
  session_ = model_.begin(options_.slots, options_.context);
  session_->select({0});
  rows_.clear();
}

void ContinuousBatch::check(const BatchRequest& request) const {
  first_tokens(model_.config(), request.prompts, -1);
  const GenerationOptions& options = request.options;
  if (request.samples < 1 || request.samples > options_.slots)
    throw Error("a prompt has 1 to ", options_.slots, " samples here, got ", request.samples);
  if (options.max_new_tokens < 1 && !request.only_prompt)
    throw Error("max_new_tokens must be at least 1, got ", options.max_new_tokens);
  if (options.beams.num_beams != 1 || options.contrastive.penalty_alpha != 0 || options.draft != nullptr)
    throw Error("beam search, contrastive search and drafts do not share a batch");
  for (const TokenIds& prompt : request.prompts) {
    const std::int64_t writes = request.only_prompt ? 0 : options.max_new_tokens;
    if (count_of(prompt) > options_.context - writes)
      throw Error("a prompt of ", prompt.size(), " tokens and ", writes, " new ones exceed the context of ",
                  options_.context, " tokens");
  }
}

bool ContinuousBatch::submit(std::shared_ptr<BatchRequest> request) {
  check(*request);
  auto work = std::make_shared<Work>(std::move(request), model_.config().vocab_size);
  const std::lock_guard lock(mutex_);
  if (queue_.size() >= options_.queue) return false;
  if (!work->request->prompts.empty()) queue_.push_back(std::move(work));
  return true;
}

std::size_t ContinuousBatch::waiting() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

bool ContinuousBatch::step() {
  const c10::InferenceMode inference;
  drop_cancelled();
  try {
    if (rows_.empty() && next_work() == nullptr) return false;
    read();
  } catch (const c10::Error& error) {
    fail_all(error.what_without_backtrace());
  } catch (const std::exception& error) {
    fail_all(error.what());
  }
  running_ = rows_.size();
  return true;
}

void ContinuousBatch::drop_cancelled() {
  for (Row& row : rows_) {
    if (row.work->request->cancelled) end(row, RowEnd::kCancelled);
  }
  keep_running_rows();
  std::vector<std::shared_ptr<Work>> dropped;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& work : queue_)
      if (work->request->cancelled) dropped.push_back(work);
    std::erase_if(queue_, [](const auto& work) { return work->request->cancelled.load(); });
  }
  for (const auto& work : dropped) {
    const auto samples = static_cast<std::size_t>(work->request->samples);
    for (std::size_t row = work->entered * samples; row < work->rows(); ++row)
      if (work->request->on_end) work->request->on_end(row, RowEnd::kCancelled);
  }
  running_ = rows_.size();
}

bool ContinuousBatch::writes() const {
  return std::any_of(rows_.begin(), rows_.end(), [](const Row& row) { return !row.reads(); });
}

// Tokens that a row may read in a step that scores prompts.
std::int64_t ContinuousBatch::most_scored() const {
  return std::max<std::int64_t>(1, kScoredLogits / model_.config().vocab_size);
}

// Slots that neither a row nor a sample to come has.
std::int64_t ContinuousBatch::free_slots() const {
  std::int64_t taken = 0;
  for (const Row& row : rows_) taken += row.reads() ? row.work->request->samples : 1;
  return options_.slots - taken;
}

// The work that enters next, if there are slots for it.
std::shared_ptr<ContinuousBatch::Work> ContinuousBatch::next_work() const {
  const std::lock_guard lock(mutex_);
  if (queue_.empty() || queue_.front()->request->samples > free_slots()) return nullptr;
  return queue_.front();
}

void ContinuousBatch::enter(std::shared_ptr<Work> work) {
  if (!rows_.empty()) session_->add_row();
  Row row;
  row.number = work->entered * static_cast<std::size_t>(work->request->samples);
  row.tokens = work->request->prompts[work->entered];
  row.given = row.tokens.size();
  row.state = work->first_state;
  ++work->entered;
  if (work->entered == work->request->prompts.size()) {
    const std::lock_guard lock(mutex_);
    std::erase(queue_, work);
  }
  row.work = std::move(work);
  rows_.push_back(std::move(row));
}

// What each row reads in this step: its last token, or the next piece of its prompt. Prompts enter while
// there is room in the step.
ContinuousBatch::Tokens ContinuousBatch::next_tokens() {
  std::shared_ptr<Work> next = next_work();
  const auto scores = [](const Work& work) { return work.request->scores_prompt; };
  const bool scoring = (next && scores(*next)) ||
                       std::any_of(rows_.begin(), rows_.end(),
                                   [&](const Row& row) { return row.reads() && scores(*row.work); });
  std::int64_t budget = writes() ? options_.piece : std::max(options_.piece, kPieceAlone);
  Tokens tokens;
  const auto read_next = [&](Row& row) {
    std::int64_t count = row.unread();
    if (row.reads()) {
      const std::int64_t most = scoring ? std::min(budget, most_scored()) : budget;
      count = std::clamp<std::int64_t>(most, 1, count);
      budget -= count;
    }
    const auto first = row.tokens.begin() + static_cast<std::ptrdiff_t>(row.read);
    tokens.emplace_back(first, first + count);
    row.read += static_cast<std::size_t>(count);
  };
  for (Row& row : rows_) read_next(row);
  for (; next && budget > 0 && (scoring || !scores(*next)); next = next_work()) {
    enter(next);
    read_next(rows_.back());
  }
  return tokens;
}

void ContinuousBatch::read() {
  const Tokens tokens = next_tokens();
  const bool scoring = std::any_of(rows_.begin(), rows_.end(), [](const Row& row) {
    return row.reads() && row.work->request->scores_prompt;
  });
  at::Tensor logits =
      session_->read(tokens, scoring ? DecodingSession::Logits::kAll : DecodingSession::Logits::kLast);
  for (std::size_t b = 0; b < rows_.size(); ++b)
    if (rows_[b].reads()) read_ += count_of(tokens[b]);
  if (scoring) {
    score_prompts(logits, tokens);
    std::vector<at::Tensor> last;
    for (std::size_t b = 0; b < tokens.size(); ++b)
      last.push_back(logits[static_cast<std::int64_t>(b)][count_of(tokens[b]) - 1]);
    logits = at::stack(last);
  }
  write(repeat_rows(logits));
  keep_running_rows();
}

// `logits` [B, T, V] follow each of the tokens just read.
void ContinuousBatch::score_prompts(const at::Tensor& logits, const Tokens& tokens) {
  for (std::size_t b = 0; b < rows_.size(); ++b) {
    Row& row = rows_[b];
    BatchRequest& request = *row.work->request;
    if (!row.reads() || !request.scores_prompt) continue;
    const at::Tensor own =
        log_probabilities_of(logits[static_cast<std::int64_t>(b)].slice(0, 0, count_of(tokens[b])))
            .to(at::kCPU);
    const std::size_t first = row.read - tokens[b].size();
    for (std::size_t i = 0; i < tokens[b].size() && first + i + 1 < row.given; ++i)
      row.scores.push_back(scored(own[static_cast<std::int64_t>(i)], row.tokens[first + i + 1],
                                  request.likeliest.value_or(0)));
    if (row.read == row.given && request.on_prompt)
      request.on_prompt(row.number / static_cast<std::size_t>(request.samples), row.scores);
  }
}

// Gives each sample of a prompt that has been read a row; returns the logits of the rows.
at::Tensor ContinuousBatch::repeat_rows(const at::Tensor& logits) {
  std::vector<std::int64_t> from;
  std::vector<Row> rows;
  for (std::size_t b = 0; b < rows_.size(); ++b) {
    Row& row = rows_[b];
    const bool begins = row.reads() && row.read == row.given;
    const std::int64_t samples = begins ? row.work->request->samples : 1;
    row.was_read = row.was_read || begins;
    for (std::int64_t s = 0; s < samples; ++s) {
      from.push_back(static_cast<std::int64_t>(b));
      rows.push_back(row);
      rows.back().number += static_cast<std::size_t>(s);
    }
  }
  if (rows.size() == rows_.size()) {
    rows_ = std::move(rows);
    return logits;
  }
  rows_ = std::move(rows);
  const at::Tensor repeated = logits.index_select(0, at::tensor(from, at::kLong).to(logits.device()));
  session_->select(from);
  return repeated;
}

// Chooses a token for each row that has read all of its own; requests choose by their own rules.
void ContinuousBatch::write(const at::Tensor& logits) {
  std::vector<std::pair<Work*, std::vector<std::int64_t>>> works;
  for (std::size_t b = 0; b < rows_.size(); ++b) {
    if (rows_[b].reads()) continue;
    Work* work = rows_[b].work.get();
    auto place =
        std::find_if(works.begin(), works.end(), [&](const auto& entry) { return entry.first == work; });
    if (place == works.end()) place = works.insert(works.end(), {work, {}});
    place->second.push_back(static_cast<std::int64_t>(b));
  }
  for (const auto& [work, rows] : works) {
    try {
      write_rows(*work, logits, rows);
    } catch (const Error& error) {  // the rules leave no token, or the logits are not finite
      fail(*work, error.what());
    }
  }
}

void ContinuousBatch::write_rows(Work& work, const at::Tensor& logits,
                                 const std::vector<std::int64_t>& rows) {
  BatchRequest& request = *work.request;
  const auto row_at = [&](std::size_t i) -> Row& { return rows_[static_cast<std::size_t>(rows[i])]; };
  if (request.only_prompt) {
    for (std::size_t i = 0; i < rows.size(); ++i) end(row_at(i), RowEnd::kLength);
    return;
  }
  const at::Tensor own = logits.index_select(0, at::tensor(rows, at::kLong).to(logits.device()));
  RowHistories histories;
  std::vector<std::int64_t> states;
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = row_at(i);
    histories.push_back({&row.tokens, row.given});
    states.push_back(row.state);
    numbers.push_back(row.number);
  }
  const TokenIds chosen = work.sampler.sample(work.rules.apply(own, histories, states), numbers);
  const at::Tensor known = request.likeliest ? log_probabilities_of(own).to(at::kCPU) : at::Tensor();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Row& row = row_at(i);
    const TokenId id = chosen[i];
    row.tokens.push_back(id);
    row.new_ids.push_back(id);
    row.state = work.rules.next_state(row.state, id);
    ++written_;
    if (request.on_token)
      request.on_token(row.number, known.defined()
                                       ? scored(known[static_cast<std::int64_t>(i)], id, *request.likeliest)
                                       : ScoredToken{.id = id});
    if (work.rules.ends(row.new_ids, row.state)) {
      end(row, RowEnd::kStop);
    } else if (count_of(row.new_ids) >= request.options.max_new_tokens) {
      end(row, RowEnd::kLength);
    }
  }
}

void ContinuousBatch::end(Row& row, RowEnd reason) {
  if (row.ended) return;
  row.ended = true;
  const BatchRequest& request = *row.work->request;
  const std::int64_t rows = row.reads() ? request.samples : 1;
  for (std::int64_t s = 0; s < rows && request.on_end; ++s)
    request.on_end(row.number + static_cast<std::size_t>(s), reason);
}

void ContinuousBatch::fail(Work& work, const std::string& message) {
  if (std::exchange(work.failed, true)) return;
  for (Row& row : rows_) row.ended = row.ended || row.work.get() == &work;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(queue_, [&](const auto& other) { return other.get() == &work; });
  }
  if (work.request->on_failure) work.request->on_failure(message);
}

// After an error of the model itself nothing is known of the session.
void ContinuousBatch::fail_all(const std::string& message) {
  std::vector<std::shared_ptr<Work>> works;
  for (const Row& row : rows_) works.push_back(row.work);
  for (const auto& work : works) fail(*work, message);
  begin_session();
}

void ContinuousBatch::keep_running_rows() {
  std::vector<std::int64_t> kept;
  for (std::size_t b = 0; b < rows_.size(); ++b)
    if (!rows_[b].ended) kept.push_back(static_cast<std::int64_t>(b));
  if (kept.size() == rows_.size()) return;
  std::erase_if(rows_, [](const Row& row) { return row.ended; });
  session_->select(kept.empty() ? std::vector<std::int64_t>{0} : kept);
  if (kept.empty()) session_->rewind(0, 0);
}

}  // namespace zoo
