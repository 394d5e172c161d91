#include "models/generation/token_loop.h"

#include <algorithm>

#include <ATen/ops/log_softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

namespace zoo {

LogitsRules::LogitsRules(const GenerationOptions& options, std::int64_t vocab_size)
    : options_(options),
      filters_(make_history_filters(options.history, {.eos_token_ids = options.eos_token_ids,
                                                      .max_new_tokens = options.max_new_tokens,
                                                      .vocab_size = vocab_size})) {}

at::Tensor LogitsRules::apply(const at::Tensor& scores, const RowHistories& rows,
                              const std::vector<std::int64_t>& states) const {
  const at::Tensor filtered = apply_filters(filters_, scores, rows);
  if (!options_.constraint) return filtered;
  std::vector<at::Tensor> masks;
  for (std::size_t b = 0; b < states.size(); ++b) {
    const std::int64_t left = options_.max_new_tokens - rows[b].new_tokens() - (forces_last() ? 1 : 0);
    const bool forced = forces_first(rows[b].tokens->size()) || (forces_last() && left == 0);
    masks.push_back(forced ? at::zeros({filtered.size(1)}) : options_.constraint->mask(states[b], left));
  }
  return filtered + at::stack(masks).to(filtered.device());
}

std::int64_t LogitsRules::first_state(std::size_t length) const {
  if (!options_.constraint) return 0;
  const std::int64_t forced = (forces_first(length) ? 1 : 0) + (forces_last() ? 1 : 0);
  return options_.constraint->begin(options_.max_new_tokens - forced);
}

bool LogitsRules::ends(const TokenIds& new_ids, std::int64_t state) const {
  const TokenIds& ends = options_.eos_token_ids;
  if (std::find(ends.begin(), ends.end(), new_ids.back()) != ends.end()) return true;
  if (options_.constraint && options_.constraint->complete(state)) return true;
  return options_.row_ends && options_.row_ends(new_ids);
}

at::Tensor log_probabilities_of(const at::Tensor& logits) { return at::log_softmax(logits, -1); }

}  // namespace zoo
