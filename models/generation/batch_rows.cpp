#include <algorithm>

#include "models/generation/continuous_batch.h"
#include "models/generation/decoding_batch.h"

namespace zoo {
namespace {

ScoredToken scored(const at::Tensor& log_probabilities, TokenId id, std::int64_t likeliest) {
  ScoredToken token{id, log_probabilities[id].item<double>(), {}};
  const auto [values, ids] = log_probabilities.topk(std::min(likeliest, log_probabilities.size(0)));
  for (std::int64_t i = 0; i < values.size(0); ++i)
    token.likeliest.emplace_back(ids[i].item<std::int64_t>(), values[i].item<double>());
  return token;
}

// Appends a chosen token and ends the row if it is finished.
void append(BatchRow& row, const ScoredToken& token) {
  BatchWork& work = *row.work;
  const BatchRequest& request = *work.request;
  row.tokens.push_back(token.id);
  row.new_ids.push_back(token.id);
  row.state = work.rules.next_state(row.state, token.id, row.tokens.size() - 1);
  if (request.on_token) request.on_token(row.number, token);
  if (work.rules.ends(row.new_ids, row.state)) {
    row.end(RowEnd::kStop);
  } else if (static_cast<std::int64_t>(row.new_ids.size()) >= request.options.max_new_tokens) {
    row.end(RowEnd::kLength);
  }
}

}  // namespace

BatchWork::BatchWork(std::shared_ptr<BatchRequest> given, std::int64_t vocab_size)
    : request(std::move(given)),
      rules(request->options, vocab_size),
      sampler(request->options.sampling, rows()),
      first_state(request->only_prompt ? 0 : rules.first_state(/*length=*/0)) {}

void BatchRow::score_prompt(const at::Tensor& logits) {
  const BatchRequest& request = *work->request;
  const at::Tensor own = log_probabilities_of(logits).to(at::kCPU);
  const std::size_t first = read - static_cast<std::size_t>(logits.size(0));
  for (std::size_t i = first; i < read && i + 1 < given; ++i)
    scores.push_back(
        scored(own[static_cast<std::int64_t>(i - first)], tokens[i + 1], request.likeliest.value_or(0)));
  const auto samples = static_cast<std::size_t>(request.samples);
  const bool is_first = number % samples == 0;  // of those that read the prompt
  if (read == given && is_first && request.on_prompt) request.on_prompt(number / samples, scores);
}

void BatchRow::end(RowEnd reason) {
  if (ended) return;
  ended = true;
  const BatchRequest& request = *work->request;
  const auto count = static_cast<std::size_t>(reads() ? samples : 1);
  for (std::size_t s = 0; s < count && request.on_end; ++s) request.on_end(number + s, reason);
}

std::vector<ScoredToken> ScoredPrompts::beginning(const BatchRequest& request, const TokenIds& tokens) const {
  std::vector<ScoredToken> longest;
  for (const Kept& kept : all_) {
    if (kept.adapter != request.adapter || kept.likeliest != request.likeliest) continue;
    const auto alike = std::ranges::mismatch(kept.tokens, tokens).in1 - kept.tokens.begin();
    if (alike > std::ssize(longest) + 1) longest.assign(kept.scores.begin(), kept.scores.begin() + alike - 1);
  }
  return longest;
}

void ScoredPrompts::keep(const BatchRow& row) {
  const BatchRequest& request = *row.work->request;
  all_.push_back({request.adapter,
                  request.likeliest,
                  {row.tokens.begin(), row.tokens.begin() + static_cast<std::ptrdiff_t>(row.given)},
                  row.scores});
  numbers_ += all_.back().numbers();
  constexpr std::size_t kMostNumbers = std::size_t{1} << 20;  // log-probabilities: some tens of MB
  for (; numbers_ > kMostNumbers; all_.pop_front()) numbers_ -= all_.front().numbers();
}

void write_tokens(BatchWork& work, const std::vector<BatchRow*>& rows, const at::Tensor& logits) {
  const BatchRequest& request = *work.request;
  RowHistories histories;
  std::vector<std::int64_t> states;
  std::vector<std::size_t> numbers;
  for (const BatchRow* row : rows) {
    histories.push_back({&row->tokens, row->given});
    states.push_back(row->state);
    numbers.push_back(row->number);
  }
  const TokenIds chosen = work.sampler.sample(work.rules.apply(logits, histories, states), numbers);
  const at::Tensor known = request.likeliest ? log_probabilities_of(logits).to(at::kCPU) : at::Tensor();
  for (std::size_t i = 0; i < rows.size(); ++i)
    append(*rows[i], known.defined()
                         ? scored(known[static_cast<std::int64_t>(i)], chosen[i], *request.likeliest)
                         : ScoredToken{.id = chosen[i]});
}

}  // namespace zoo
