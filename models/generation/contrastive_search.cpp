#include "models/generation/contrastive_search.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/topk.h>

#include "data/base/error.h"
#include "models/generation/running_rows.h"

namespace zoo {
namespace {

// Unit vectors of [T, C]; a row of zeros stays zero.
at::Tensor directions(const at::Tensor& states) {
  return states / states.norm(2, -1, /*keepdim=*/true).clamp_min(1e-12);
}

// Hidden states of a row's tokens, as unit vectors.
class SeenStates {
 public:
  void append(const at::Tensor& states) {
    const std::int64_t end = count_ + states.size(0);
    if (!held_.defined() || end > held_.size(0)) {
      at::Tensor larger = at::empty({2 * end, states.size(1)}, states.options());
      if (count_ > 0) larger.slice(0, 0, count_).copy_(all());
      held_ = larger;
    }
    held_.slice(0, count_, end).copy_(directions(states));
    count_ = end;
  }
  void forget() { count_ = 0; }
  at::Tensor all() const { return held_.defined() ? held_.slice(0, 0, count_) : held_; }

 private:
  at::Tensor held_;
  std::int64_t count_ = 0;
};

// Candidates for the next tokens; those of one row are contiguous, most likely first.
struct Candidates {
  std::vector<std::int64_t> parents;  // row that each may continue
  TokenIds ids;
  std::vector<float> probabilities;
};

class ContrastiveLoop : public TokenLoop {
 public:
  explicit ContrastiveLoop(GenerationTask& task)
      : options_(task.options),
        on_token_(task.on_token),
        rules_(options_, task.model.config().vocab_size),
        rows_(task.model, task.prompts,
              {.max_new_tokens = options_.max_new_tokens,
               .context = options_.context,
               .decoder_start_token_id = options_.decoder_start_token_id,
               .hidden_states = true}),
        running_(options_, rules_, rows_, task.result),
        sampler_({.temperature = 1.0}, 0),
        seen_(task.prompts.size()) {}

  bool going() const override { return steps_ < options_.max_new_tokens && running_.any(); }

  bool step() override {
    ++steps_;
    if (!logits_.defined()) read_prompts();
    const Candidates candidates = find_candidates();
    rows_.select(candidates.parents);
    for (std::size_t c = 0; c < candidates.ids.size(); ++c) rows_.append(c, candidates.ids[c]);
    const at::Tensor next = rows_.next_logits();
    const std::vector<std::int64_t> best = choose(candidates);
    TokenIds chosen;
    for (const std::int64_t c : best) chosen.push_back(candidates.ids[static_cast<std::size_t>(c)]);
    const RunningRows::Step step = running_.take(chosen, logits_, on_token_);
    std::vector<std::int64_t> kept;
    std::vector<SeenStates> seen;
    for (const std::int64_t row : step.going) {
      kept.push_back(best[static_cast<std::size_t>(row)]);
      seen.push_back(std::move(seen_[static_cast<std::size_t>(row)]));
    }
    seen_ = std::move(seen);
    if (kept.empty()) return step.wanted;
    logits_ = next.index_select(0, at::tensor(kept, at::kLong).to(next.device()));
    rows_.select(kept);
    return step.wanted;
  }

 private:
  void read_prompts() {
    logits_ = rows_.next_logits().clone();
    for (std::size_t row = 0; row < rows_.size(); ++row) seen_[row].append(rows_.new_states(row));
  }

  Candidates find_candidates() {
    const at::Tensor allowed = running_.allowed(logits_, rows_);
    const at::Tensor chances = sampler_.distribution(allowed);
    const std::int64_t count = std::min(options_.contrastive.top_k, chances.size(1));
    const auto [values, places] = at::topk(chances, count);
    const at::Tensor scores = allowed.to(at::kCPU).gather(1, places);
    Candidates found;
    for (std::int64_t row = 0; row < chances.size(0); ++row) {
      for (std::int64_t i = 0; i < count; ++i) {
        if (std::isinf(scores[row][i].item<float>())) continue;  // forbidden
        found.parents.push_back(row);
        found.ids.push_back(places[row][i].item<TokenId>());
        found.probabilities.push_back(values[row][i].item<float>());
      }
    }
    return found;
  }

  // Returns each row's best candidate and adds its hidden state to those seen.
  std::vector<std::int64_t> choose(const Candidates& candidates) {
    std::vector<std::int64_t> best;
    const std::size_t all = candidates.ids.size();
    for (std::size_t first = 0, last = 0; first < all; first = last) {
      SeenStates& seen = seen_[best.size()];
      std::vector<at::Tensor> states;
      for (; last < all && candidates.parents[last] == candidates.parents[first]; ++last)
        states.push_back(rows_.new_states(last)[-1]);
      // After the context has slid, this has the states of all remaining tokens.
      const at::Tensor read = rows_.new_states(first);
      if (read.size(0) == static_cast<std::int64_t>(rows_.seen(first))) {
        seen.forget();
        seen.append(read.slice(0, 0, -1));
      }
      const at::Tensor own = at::stack(states);
      const std::vector<float> chances(candidates.probabilities.begin() + static_cast<std::ptrdiff_t>(first),
                                       candidates.probabilities.begin() + static_cast<std::ptrdiff_t>(last));
      const at::Tensor scores = contrastive_scores(at::tensor(chances).to(own.device()), own, seen.all(),
                                                   options_.contrastive.penalty_alpha);
      const auto place = scores.argmax().item<std::int64_t>();
      seen.append(own[place].unsqueeze(0));
      best.push_back(static_cast<std::int64_t>(first) + place);
    }
    return best;
  }

  const GenerationOptions& options_;
  const TokenCallback& on_token_;
  LogitsRules rules_;
  DecodingBatch rows_;
  RunningRows running_;
  TokenSampler sampler_;          // for its probabilities only
  std::vector<SeenStates> seen_;  // of rows that have not ended
  at::Tensor logits_;             // [B, V], of their next tokens
  std::int64_t steps_ = 0;
};

void check(const ContrastiveOptions& options) {
  if (!(options.penalty_alpha >= 0 && options.penalty_alpha <= 1))
    throw Error("penalty_alpha must be in [0, 1], got ", options.penalty_alpha);
  if (options.top_k < 2)
    throw Error("contrastive search chooses among top_k candidates, at least 2, got ", options.top_k);
}

}  // namespace

at::Tensor contrastive_scores(const at::Tensor& probabilities, const at::Tensor& candidates,
                              const at::Tensor& before, double alpha) {
  const at::Tensor confidence = probabilities * (1 - alpha);
  if (before.size(0) == 0) return confidence;
  const at::Tensor alike = directions(candidates).matmul(before.t());  // [k, T]
  return confidence - alike.amax(-1) * alpha;
}

std::unique_ptr<TokenLoop> contrastive_loop(GenerationTask& task) {
  check(task.options.contrastive);
  return std::make_unique<ContrastiveLoop>(task);
}

}  // namespace zoo
