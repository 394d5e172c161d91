#include "models/generation/continuous_batch.h"

#include <algorithm>
#include <cstring>

#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>

#include "data/base/atomic_file.h"
#include "data/base/crc32c.h"
#include "data/base/field_error.h"
#include "data/base/mapped_file.h"
#include "data/base/sizes.h"
#include "models/generation/decoding_batch.h"
#include "models/model.h"

namespace zoo {
namespace {

// Tokens of prompts that a step reads while no row generates, or many prompts wait.
constexpr std::int64_t kPieceAlone = 512;
constexpr std::int64_t kRequestsOfPiece = 4;
// Maximum number of logits per row in a step that scores prompts, which computes logits for every token.
constexpr std::int64_t kScoredLogits = std::int64_t{1} << 21;
const std::string kCacheFile = "tzoo KV cache 1: ";

}  // namespace

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
  session_->hold(options_.held_bytes);
  session_->select({0});
}

// A line with the mark, what the session writes, and the crc32c of both.
void ContinuousBatch::save(const std::filesystem::path& path, const std::string& mark) const {
  if (!session_) return;  // it has failed
  AtomicFile file(path);
  using std::filesystem::perms;
  std::filesystem::permissions(file.written(), perms::owner_read | perms::owner_write);  // texts of clients
  std::uint32_t sum = 0;
  const auto write = [&](const void* bytes, std::size_t size) {
    file.write(bytes, size);
    sum = crc32c(bytes, size, sum);
  };
  const std::string line = kCacheFile + mark + "\n";
  write(line.data(), line.size());
  session_->save(write);
  file.write(&sum, sizeof sum);
  file.commit();
}

bool ContinuousBatch::load(const std::filesystem::path& path, const std::string& mark) {
  session_->load({});  // one that cannot hold says so whatever the file is
  const MappedFile file(path);
  const std::string line = kCacheFile + mark + "\n";
  const std::span<const std::byte> bytes = file.bytes();
  std::uint32_t sum = 0;
  if (bytes.size() < kCacheFile.size() ||
      std::memcmp(bytes.data(), kCacheFile.data(), kCacheFile.size()) != 0)
    throw Error(path, " exists and holds no KV cache; expected another file");
  if (bytes.size() < line.size() + sizeof sum || std::memcmp(bytes.data(), line.data(), line.size()) != 0)
    return false;
  const std::span<const std::byte> content = bytes.first(bytes.size() - sizeof sum);
  std::memcpy(&sum, bytes.data() + content.size(), sizeof sum);
  if (crc32c(content.data(), content.size()) != sum) throw Error(path, " is damaged; delete it");
  session_->load(content.subspan(line.size()));
  return true;
}

void ContinuousBatch::check(const BatchRequest& request) const {
  first_tokens(model_.config(), request.prompts, -1);
  const GenerationOptions& options = request.options;
  if (request.samples < 1) throw Error("a prompt has at least 1 sample, got ", request.samples);
  require_in(at_least(0), "likeliest", request.likeliest);
  if (options.max_new_tokens < 1 && !request.only_prompt)
    throw Error("max_new_tokens must be at least 1, got ", options.max_new_tokens);
  if (options.beams.num_beams != 1 || options.draft != nullptr || options.context != 0)
    throw Error("beam search, drafts and a context of their own do not share a batch");
  for (const TokenIds& prompt : request.prompts) {
    const std::int64_t writes = request.only_prompt ? 0 : options.max_new_tokens;
    if (std::ssize(prompt) > options_.context - writes)
      throw Error("a prompt of ", prompt.size(), " tokens and ", writes, " new ones exceed the context of ",
                  options_.context, " tokens");
    // Prompts are read in pieces, and each piece would be rotated by its own length.
    const RopeScaling& scaling = model_.config().rope_scaling;
    if (scaling.depends_on_length() && std::ssize(prompt) + writes > scaling.original_max_positions)
      throw Error("a prompt of ", prompt.size(), " tokens and ", writes,
                  " new ones exceed the original context of ", scaling.original_max_positions,
                  " tokens, beyond which rotary positions depend on the length: no shared batch has them");
  }
}

bool ContinuousBatch::submit(std::shared_ptr<BatchRequest> request) {
  check(*request);
  auto work = std::make_shared<BatchWork>(std::move(request), model_.config().vocab_size);
  const std::lock_guard lock(mutex_);
  // Those that the free slots take do not wait.
  const std::size_t slots = static_cast<std::size_t>(options_.slots), free = slots - std::min(slots, rows());
  if (queue_.size() >= options_.queue + free) return false;
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
    if (!session_) begin_session();
    read();
  } catch (const std::exception& error) {
    fail_all(error);
  }
  running_ = rows_.size();
  return true;
}

void ContinuousBatch::drop_cancelled() {
  for (BatchRow& row : rows_)
    if (row.work->request->cancelled) row.end(RowEnd::kCancelled);
  keep_running_rows();
  std::vector<std::shared_ptr<BatchWork>> dropped;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(queue_, [&](const auto& work) {
      if (!work->request->cancelled) return false;
      dropped.push_back(work);
      return true;
    });
  }
  for (const auto& work : dropped) {
    for (std::size_t row = work->entered; row < work->rows(); ++row)
      if (work->request->on_end) work->request->on_end(row, RowEnd::kCancelled);
  }
  running_ = rows_.size();
}

// Prompts of many waiting requests are read in larger passes; generating rows wait a little longer.
std::int64_t ContinuousBatch::prompt_tokens_at_once() const {
  if (std::ranges::all_of(rows_, &BatchRow::reads)) return std::max(options_.piece, kPieceAlone);
  const std::int64_t enter = std::min(static_cast<std::int64_t>(waiting()), free_slots());
  return std::max(options_.piece, std::min(kPieceAlone, options_.piece * (1 + enter / kRequestsOfPiece)));
}

// Slots without a row and not reserved for a sample.
std::int64_t ContinuousBatch::free_slots() const {
  std::int64_t taken = 0;
  for (const BatchRow& row : rows_) taken += row.reads() ? row.samples : 1;
  return options_.slots - taken;
}

// The work that enters next, if there is a slot.
std::shared_ptr<BatchWork> ContinuousBatch::next_work() const {
  const std::lock_guard lock(mutex_);
  if (queue_.empty() || free_slots() < 1) return nullptr;
  return queue_.front();
}

// A prompt is read once for as many samples as there are free slots, and again for the others later, so that
// many samples neither wait for all slots nor block the free ones.
void ContinuousBatch::enter(std::shared_ptr<BatchWork> work) {
  const std::int64_t free = free_slots();
  if (!rows_.empty()) session_->add_row();
  const auto samples = static_cast<std::size_t>(work->request->samples);
  BatchRow row;
  row.number = work->entered;
  row.samples = std::min(free, static_cast<std::int64_t>(samples - work->entered % samples));
  row.tokens = work->request->prompts[work->entered / samples];
  row.given = row.tokens.size();
  row.state = work->first_state;
  session_->adapt(session_->rows() - 1, work->request->adapter);
  const BatchRequest& request = *work->request;
  TokenIds known = row.tokens;
  if (request.scores_prompt) {  // of these never the last, whose logits score the next token
    row.scores = scored_.beginning(request, row.tokens);
    known.resize(row.scores.size() + 1);
  }
  const auto held = session_->reuse(session_->rows() - 1, known);
  row.read = static_cast<std::size_t>(held);
  if (request.scores_prompt) row.scores.resize(row.read);
  reused_ += held;
  if (request.on_reuse && row.number % samples == 0) request.on_reuse(row.number / samples, held);
  work->entered += static_cast<std::size_t>(row.samples);
  if (work->entered == work->rows()) {
    const std::lock_guard lock(mutex_);
    std::erase(queue_, work);
  }
  row.work = std::move(work);
  rows_.push_back(std::move(row));
  running_ = rows_.size();
}

// True while a row reads, and scores, most of what the work's next prompt would read.
bool ContinuousBatch::is_being_scored(const BatchWork& work) const {
  const BatchRequest& request = *work.request;
  if (!request.scores_prompt) return false;
  const TokenIds& prompt = request.prompts[work.entered / static_cast<std::size_t>(request.samples)];
  const auto known = std::ssize(scored_.beginning(request, prompt));
  return std::ranges::any_of(rows_, [&](const BatchRow& row) {
    const BatchRequest& other = *row.work->request;
    if (!row.reads_and_scores() || other.adapter != request.adapter || other.likeliest != request.likeliest)
      return false;
    const auto alike = std::ranges::mismatch(row.tokens, prompt).in1 - row.tokens.begin();
    return 2 * (alike - known) > std::ssize(prompt) - known;
  });
}

// Tokens that each row reads in this step: its last token, or the next piece of its prompt. Prompts enter
// while there is room in the step.
ContinuousBatch::Tokens ContinuousBatch::next_tokens() {
  std::shared_ptr<BatchWork> next = next_work();
  const auto scores = [](const BatchWork& work) { return work.request->scores_prompt; };
  const bool scoring = (next && scores(*next)) || std::ranges::any_of(rows_, &BatchRow::reads_and_scores);
  std::int64_t budget = prompt_tokens_at_once();
  Tokens tokens;
  const auto read_next = [&](BatchRow& row) {
    std::int64_t count = row.unread();
    if (row.reads()) {
      const std::int64_t most =
          scoring ? std::min(budget, kScoredLogits / model_.config().vocab_size) : budget;
      count = std::clamp<std::int64_t>(most, 1, count);
      budget -= count;
    }
    const auto first = row.tokens.begin() + static_cast<std::ptrdiff_t>(row.read);
    tokens.emplace_back(first, first + count);
    row.read += static_cast<std::size_t>(count);
  };
  for (BatchRow& row : rows_) read_next(row);
  for (; next && budget > 0 && (scoring || !scores(*next)) && !is_being_scored(*next); next = next_work()) {
    try {
      enter(next);
    } catch (const Error& error) {  // the model has no such adapter
      fail(*next, error);
      if (!rows_.empty())  // not the row that was added for it
        session_->select(indices_below<std::int64_t>(rows_.size()));
      continue;
    }
    read_next(rows_.back());
  }
  return tokens;
}

void ContinuousBatch::read() {
  const Tokens tokens = next_tokens();
  if (tokens.empty()) return;
  const bool scoring = std::ranges::any_of(rows_, &BatchRow::reads_and_scores);
  at::Tensor logits;
  try {
    logits = session_->read(tokens, scoring ? DecodingSession::Logits::kAll : DecodingSession::Logits::kLast);
  } catch (const RowMemoryError& error) {  // the rows of other requests read these tokens in the next step
    for (std::size_t b = 0; b < rows_.size(); ++b) rows_[b].read -= tokens[b].size();
    fail(*rows_[error.row].work, error);
    return keep_running_rows();
  }
  for (std::size_t b = 0; b < rows_.size(); ++b)
    if (rows_[b].reads()) read_ += std::ssize(tokens[b]);
  if (scoring) {
    std::vector<at::Tensor> last;
    for (std::size_t b = 0; b < tokens.size(); ++b) {
      const at::Tensor own = logits[static_cast<std::int64_t>(b)].slice(0, 0, std::ssize(tokens[b]));
      if (rows_[b].reads_and_scores()) {
        rows_[b].score_prompt(own);
        if (rows_[b].read == rows_[b].given) scored_.keep(rows_[b]);
      }
      last.push_back(own[-1]);
    }
    logits = at::stack(last);
  }
  write(repeat_rows(logits));
  keep_running_rows();
}

// Gives each sample of a prompt that has been read its own row; returns the logits of the rows.
at::Tensor ContinuousBatch::repeat_rows(const at::Tensor& logits) {
  std::vector<std::int64_t> from;
  std::vector<BatchRow> rows;
  for (std::size_t b = 0; b < rows_.size(); ++b) {
    BatchRow& row = rows_[b];
    const bool begins = row.reads() && row.read == row.given;
    const std::int64_t samples = begins ? row.samples : 1;
    row.was_read = row.was_read || begins;
    for (std::int64_t s = 0; s < samples; ++s) {
      from.push_back(static_cast<std::int64_t>(b));
      rows.push_back(row);
      rows.back().number += static_cast<std::size_t>(s);
    }
  }
  const bool same = rows.size() == rows_.size();
  rows_ = std::move(rows);
  if (same) return logits;
  const at::Tensor repeated = logits.index_select(0, at::tensor(from, at::kLong).to(logits.device()));
  session_->select(from);
  return repeated;
}

// Chooses a token for each row whose tokens have all been read; each request has its own rules.
void ContinuousBatch::write(const at::Tensor& logits) {
  std::vector<std::shared_ptr<BatchWork>> works;
  for (const BatchRow& row : rows_) {
    if (!row.reads() && std::find(works.begin(), works.end(), row.work) == works.end())
      works.push_back(row.work);
  }
  for (const auto& work : works) {
    std::vector<BatchRow*> rows;
    std::vector<std::int64_t> places;
    for (std::size_t b = 0; b < rows_.size(); ++b) {
      if (rows_[b].reads() || rows_[b].work != work) continue;
      rows.push_back(&rows_[b]);
      places.push_back(static_cast<std::int64_t>(b));
    }
    if (work->request->only_prompt) {
      for (BatchRow* row : rows) row->end(RowEnd::kLength);
      continue;
    }
    try {
      write_tokens(*work, rows, logits.index_select(0, at::tensor(places, at::kLong).to(logits.device())));
      written_ += static_cast<std::int64_t>(rows.size());
    } catch (const std::exception& error) {  // no token is allowed, or out of memory
      fail(*work, error);
    }
  }
}

void ContinuousBatch::fail(BatchWork& work, const std::exception& error) {
  if (std::exchange(work.failed, true)) return;
  for (BatchRow& row : rows_) row.ended = row.ended || row.work.get() == &work;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(queue_, [&](const auto& other) { return other.get() == &work; });
  }
  const bool is_its_fault = dynamic_cast<const Error*>(&error) != nullptr;
  if (work.request->on_failure) work.request->on_failure(plain_message(error), is_its_fault);
}

// After an error of the model, the session's state is unknown: the next step begins a new one.
void ContinuousBatch::fail_all(const std::exception& error) {
  std::vector<std::shared_ptr<BatchWork>> works;
  for (const BatchRow& row : rows_) works.push_back(row.work);
  if (works.empty())  // no session could begin for the next one, or it could not enter
    if (const auto next = next_work()) works.push_back(next);
  for (const auto& work : works) fail(*work, error);
  rows_.clear();
  session_.reset();
}

void ContinuousBatch::keep_running_rows() {
  std::vector<std::int64_t> kept;
  for (std::size_t b = 0; b < rows_.size(); ++b)
    if (!rows_[b].ended) kept.push_back(static_cast<std::int64_t>(b));
  if (kept.size() == rows_.size()) return;
  std::erase_if(rows_, [](const BatchRow& row) { return row.ended; });
  session_->select(kept.empty() ? std::vector<std::int64_t>{0} : kept);
  if (kept.empty()) session_->rewind(0, 0);
}

}  // namespace zoo
