#include "models/generation/running_rows.h"

#include <numeric>

namespace zoo {

RunningRows::RunningRows(const GenerationOptions& options, const LogitsRules& rules,
                         const DecodingBatch& rows, GenerationResult& result)
    : options_(options),
      rules_(rules),
      result_(result),
      numbers_(rows.size()),
      states_(rows.size(), rules.first_state()) {
  std::iota(numbers_.begin(), numbers_.end(), 0);
  for (std::size_t b = 0; b < rows.size(); ++b) given_.push_back(rows.tokens(b).size());
  result.ids.resize(rows.size());
  if (options.log_probabilities) result.log_probabilities.resize(rows.size());
}

at::Tensor RunningRows::allowed(const at::Tensor& logits, const DecodingBatch& rows) {
  RowHistories histories;
  for (std::size_t b = 0; b < numbers_.size(); ++b) histories.push_back({&rows.tokens(b), given_[b]});
  return rules_.apply(logits, histories, states_);
}

RunningRows::Step RunningRows::take(const TokenIds& chosen, const at::Tensor& logits,
                                    const TokenCallback& on_token) {
  const at::Tensor own = options_.log_probabilities ? log_probabilities_of(logits).to(at::kCPU) : logits;
  Step step;
  for (std::size_t b = 0; b < chosen.size(); ++b) {
    NewToken token{numbers_[b], chosen[b]};
    if (options_.log_probabilities) {
      token.log_probability = own[static_cast<std::int64_t>(b)][token.id].item<double>();
      result_.log_probabilities[token.row].push_back(token.log_probability);
    }
    states_[b] = rules_.next_state(states_[b], token.id);
    result_.ids[token.row].push_back(token.id);
    if (!rules_.ends(result_.ids[token.row], states_[b])) step.going.push_back(static_cast<std::int64_t>(b));
    if (on_token && !on_token(token)) step.wanted = false;
  }
  if (step.going.size() < numbers_.size()) keep(step.going);
  return step;
}

void RunningRows::keep(const std::vector<std::int64_t>& rows) {
  for (std::size_t b = 0; b < rows.size(); ++b) {
    const auto from = static_cast<std::size_t>(rows[b]);
    numbers_[b] = numbers_[from];
    given_[b] = given_[from];
    states_[b] = states_[from];
  }
  numbers_.resize(rows.size());
  given_.resize(rows.size());
  states_.resize(rows.size());
}

}  // namespace zoo
