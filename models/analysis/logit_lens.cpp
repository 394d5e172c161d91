#include "models/analysis/logit_lens.h"

#include <algorithm>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include "models/layers/stack.h"

namespace zoo::analysis {
namespace {

constexpr double kNatsPerBit = 0.69314718055994530942;
constexpr std::int64_t kRowsTogether = 64;  // of logits

// [P] of the run's first row.
at::Tensor chosen_positions(const at::Tensor& states, const std::vector<std::int64_t>& positions) {
  const std::int64_t length = states.size(1);
  const auto options = at::TensorOptions().dtype(at::kLong);
  if (positions.empty()) return at::arange(length, options).to(states.device());
  for (const std::int64_t position : positions)
    TORCH_CHECK(position >= 0 && position < length, "position ", position, " is not in a sequence of ",
                length);
  return at::tensor(positions, options).to(states.device());
}

// Mean of log-probabilities or differences of them [*, V] under p, in bits: [*].
at::Tensor mean_bits(const at::Tensor& log_p, const at::Tensor& nats) {
  const at::Tensor p = log_p.exp();
  return (p * nats).masked_fill(p.eq(0), 0.0).sum(-1) / kNatsPerBit;
}

}  // namespace

at::Tensor divergence(const at::Tensor& log_p, const at::Tensor& log_q) {
  return mean_bits(log_p, log_p - log_q);
}

bool has_lens(const Model& model) { return model.parts().head.is_at_every_position(); }

at::Tensor lens_logits(const Model& model, const at::Tensor& states) {
  TORCH_CHECK(
      has_lens(model),
      "the logit lens needs a head that gives logits at every position: that of a language model or of "
      "a token classifier");
  const HeadParts head = model.parts().head;
  const Norm& final_norm = head_stack(model).final_norm;
  return head.logits(head.transformed(final_norm ? final_norm->forward(states) : states));
}

LogitLens logit_lens(const Model& model, const Run& run, const LensOptions& options) {
  TORCH_CHECK(options.top_k > 0, "top_k must be positive, got ", options.top_k);
  const at::Tensor positions = chosen_positions(run.stream.front(), options.positions);
  std::vector<at::Tensor> states;
  for (const at::Tensor& state : run.stream) states.push_back(state[0].index_select(0, positions));
  const auto log_probabilities = [&](const at::Tensor& some) {  // [l, P, C] -> [l, P, V]
    return at::log_softmax(lens_logits(model, some).to(at::kFloat), -1);
  };
  // Several layers share a product, which loads the head's weights once, as long as the logits stay small.
  const std::int64_t together = std::max<std::int64_t>(1, kRowsTogether / positions.size(0));
  const std::vector<at::Tensor> groups = at::stack(states).split(together);
  const at::Tensor of_last_group = log_probabilities(groups.back());
  const at::Tensor last = of_last_group.slice(0, -1);
  const std::int64_t size = last.size(-1);
  TORCH_CHECK(!options.token || (*options.token >= 0 && *options.token < size), "token ",
              options.token.value_or(0), " is not in [0, ", size, ")");
  std::vector<at::Tensor> ids, probabilities, entropies, divergences, of_token, ranks;
  for (const at::Tensor& group : groups) {
    const at::Tensor log_p = &group == &groups.back() ? of_last_group : log_probabilities(group);
    const auto [values, indices] = log_p.topk(std::min(options.top_k, size));
    ids.push_back(indices);
    probabilities.push_back(values.exp());
    entropies.push_back(-mean_bits(log_p, log_p));
    divergences.push_back(divergence(last, log_p));
    if (!options.token) continue;
    const at::Tensor own = log_p.select(-1, *options.token);
    of_token.push_back(own.exp());
    ranks.push_back(log_p.gt(own.unsqueeze(-1)).sum(-1));
  }
  LogitLens lens{.ids = at::cat(ids),
                 .probabilities = at::cat(probabilities),
                 .entropies = at::cat(entropies),
                 .divergences = at::cat(divergences)};
  if (options.token) {
    lens.token_probabilities = at::cat(of_token);
    lens.token_ranks = at::cat(ranks);
  }
  return lens;
}

}  // namespace zoo::analysis
