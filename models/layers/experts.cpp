#include "models/layers/experts.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include "models/ops/linear.h"
#include "models/ops/tracing.h"

namespace zoo {

ExpertsImpl::ExpertsImpl(const TransformerConfig& config)
    : count_(config.num_experts),
      chosen_(config.experts_per_token),
      activation_(config.activation),
      weights_(config.expert_weights),
      inner_dropout_(config.activation_dropout),
      output_dropout_(config.feed_forward_output_dropout()) {
  const std::int64_t width = config.expert_width();
  const std::int64_t up_width = is_gated(activation_) ? 2 * width : width;
  router = register_module("router", Linear(config.hidden_size, count_, /*with_bias=*/false));
  up = register_module("up", Linear(config.hidden_size, count_ * up_width, /*with_bias=*/false));
  down = register_module("down", Linear(width, count_ * config.hidden_size, /*with_bias=*/false));
  if (config.shared_expert_size == 0) return;
  TransformerConfig one = config;
  one.intermediate_size = config.shared_expert_size;
  one.dropout = 0;  // of the sum of all experts' outputs
  shared = register_module("shared", FeedForward(one));
  shared_gate = register_module("shared_gate", Linear(config.hidden_size, 1, /*with_bias=*/false));
}

at::Tensor ExpertsImpl::forward(const at::Tensor& x, const at::Tensor& add_to, at::Tensor* router_logits) {
  const at::Tensor rows = x.flatten(0, -2);  // [N, C]
  const at::Tensor logits = router(rows);
  if (router_logits != nullptr) *router_logits = logits;
  auto [weights, chosen] = logits.softmax(-1, at::kFloat).topk(chosen_, -1);  // [N, k]
  if (weights_ == ExpertWeights::kOfChosen) weights = weights / weights.sum(-1, /*keepdim=*/true);
  weights = weights.to(rows.scalar_type());
  at::Tensor y =
      ops::Tracing::is_active() ? run_all_experts(rows, chosen, weights) : run_experts(rows, chosen, weights);
  if (shared) y = y + shared_gate(rows).sigmoid() * shared(rows);
  return ops::Residual{.add_to = add_to, .dropout = is_training() ? output_dropout_ : 0.0}(y.view_as(x));
}

// Every expert computes every token, with a weight of 0 for those that did not choose it: a trace then has no
// size that depends on the choice.
at::Tensor ExpertsImpl::run_all_experts(const at::Tensor& rows, const at::Tensor& chosen,
                                        const at::Tensor& weights) {
  const at::Tensor shares = at::zeros({rows.size(0), count_}, weights.options()).scatter(1, chosen, weights);
  const auto ups = up->adapted_weight().unflatten(0, {count_, -1}).unbind();
  const auto downs = down->adapted_weight().unflatten(0, {count_, -1}).unbind();
  at::Tensor y;
  for (std::size_t i = 0; i < ups.size(); ++i) {
    const at::Tensor one = ops::feed_forward(rows, {.up = ups[i], .down = downs[i]}, activation_, 0.0) *
                           shares.slice(1, static_cast<std::int64_t>(i), static_cast<std::int64_t>(i) + 1);
    y = y.defined() ? y + one : one;
  }
  return y;
}

// The tokens are sorted by expert, so that each expert computes one product over all of its tokens.
at::Tensor ExpertsImpl::run_experts(const at::Tensor& rows, const at::Tensor& chosen,
                                    const at::Tensor& weights) {
  const at::Tensor experts = chosen.flatten();  // [N k]
  const at::Tensor order = experts.argsort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
  const at::Tensor counts = at::bincount(experts, {}, count_).cpu();
  const at::Tensor sorted = rows.index_select(0, order.div(chosen_, "floor"));
  // unbind() gathers the experts' gradients in one pass; each slice() would add a whole weight of zeros.
  const auto ups = up->adapted_weight().unflatten(0, {count_, -1}).unbind();
  const auto downs = down->adapted_weight().unflatten(0, {count_, -1}).unbind();
  std::vector<at::Tensor> outputs;
  std::int64_t begin = 0;
  for (std::int64_t e = 0; e < count_; ++e) {
    const std::int64_t count = counts.const_data_ptr<std::int64_t>()[e], end = begin + count;
    if (count == 0) continue;
    const auto i = static_cast<std::size_t>(e);
    outputs.push_back(ops::feed_forward(sorted.slice(0, begin, end), {.up = ups[i], .down = downs[i]},
                                        activation_, is_training() ? inner_dropout_ : 0.0));
    begin = end;
  }
  at::Tensor place = at::empty_like(order);  // of each token's choices in the sorted order
  place.scatter_(0, order, at::arange(order.size(0), order.options()));
  const at::Tensor y = at::cat(outputs).index_select(0, place).unflatten(0, {-1, chosen_});  // [N, k, C]
  return (y * weights.unsqueeze(-1)).sum(1);
}

at::Tensor router_loss(const std::vector<at::Tensor>& logits, std::int64_t experts_per_token,
                       const at::Tensor& attention_mask) {
  TORCH_CHECK(!logits.empty(), "a router's loss needs a layer with experts");
  const auto options = logits.front().options().dtype(at::kFloat);
  const std::int64_t experts = logits.front().size(-1), tokens = logits.front().size(0);
  TORCH_CHECK(!attention_mask.defined() || attention_mask.numel() == tokens,
              "the attention mask of a router's loss must have ", tokens, " elements, got ",
              attention_mask.sizes());
  const at::Tensor kept = attention_mask.defined() ? attention_mask.flatten().to(options).unsqueeze(1)
                                                   : at::ones({tokens, 1}, options);
  at::Tensor uses = at::zeros({experts}, options), probabilities = at::zeros({experts}, options);
  for (const at::Tensor& layer : logits) {
    const at::Tensor shares = layer.softmax(-1);
    const at::Tensor chosen = std::get<1>(shares.topk(experts_per_token, -1));
    uses = uses.scatter_add(0, chosen.flatten(), kept.expand_as(chosen).flatten());
    probabilities = probabilities + (shares.to(at::kFloat) * kept).sum(0);
  }
  const at::Tensor count = kept.sum() * static_cast<double>(logits.size());
  return (uses / count * (probabilities / count)).sum() * static_cast<double>(experts);
}

}  // namespace zoo
