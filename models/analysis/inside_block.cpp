#include "models/analysis/inside_block.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/linalg_vector_norm.h>

#include "models/analysis/logit_lens.h"
#include "models/analysis/residual_stream.h"
#include "models/layers/stack.h"
#include "models/ops/activation.h"

namespace zoo::analysis {
namespace {

constexpr std::int64_t kNeurons = 8, kTokens = 5;

double length_of(const at::Tensor& x) { return at::linalg_vector_norm(x).item<double>(); }

// Collects the numbers of the norms that states [1, T, C] pass through.
struct Norms {
  const TransformerConfig& config;
  std::int64_t position;
  std::vector<NormNumbers> seen;

  // What the norm gives; without one, and without its input, the same.
  at::Tensor operator()(const char* name, const Norm& norm, const at::Tensor& states) {
    if (!norm || !states.defined()) return states;
    const at::Tensor x = states[0][position].to(at::kFloat), y = norm->forward(states);
    NormNumbers numbers{.name = name, .before = length_of(x), .after = length_of(y[0][position])};
    if (config.norm == NormKind::kLayerNorm) numbers.mean = x.mean().item<double>();
    const at::Tensor squares = (x - numbers.mean.value_or(0)).square().mean();
    numbers.divisor = std::sqrt(squares.item<double>() + config.layer_norm_eps);
    seen.push_back(std::move(numbers));
    return y;
  }
};

// A sublayer's output before its last norm, from its heads [1, H, T, D].
at::Tensor projected(const Linear& out, const at::Tensor& heads) {
  return heads.defined() ? out->forward(heads.transpose(1, 2).flatten(2)) : at::Tensor();
}

std::vector<Neuron> neurons_of(const Model& model, const TransformerStackImpl& stack, FeedForwardImpl& part,
                               const at::Tensor& state) {
  const at::Tensor activations = activate(part.up->forward(state), stack.config().activation).to(at::kFloat);
  const at::Tensor down = part.down->adapted_weight().to(at::kFloat);  // [C, F]
  const at::Tensor strengths = activations.abs() * at::linalg_vector_norm(down, 2, at::IntArrayRef{0});
  const auto [best, ids] = strengths.topk(std::min(kNeurons, strengths.size(0)));
  const HeadParts head = model.parts().head;
  const bool tells = &stack == &head_stack(model) && has_lens(model) && head.has_vocabulary() &&
                     !head.dense && !head.norm && head.weight.size(1) == down.size(0);
  at::Tensor promoted;  // [8, tokens], of all at once: the table is large
  if (tells) {
    const at::Tensor columns = down.index_select(1, ids) * activations.index_select(0, ids);
    const at::Tensor raised = head.weight.to(at::kFloat).matmul(columns).t();
    promoted = std::get<1>(raised.topk(std::min(kTokens, raised.size(1)))).cpu().contiguous();
  }
  std::vector<Neuron> neurons;
  for (std::int64_t i = 0; i < ids.size(0) && best[i].item<float>() > 0; ++i) {
    const auto id = ids[i].item<std::int64_t>();
    neurons.push_back(
        {.id = id, .activation = activations[id].item<double>(), .strength = best[i].item<double>()});
    if (!tells) continue;
    const auto* tokens = promoted[i].const_data_ptr<std::int64_t>();
    neurons.back().tokens.assign(tokens, tokens + promoted.size(1));
  }
  return neurons;
}

}  // namespace

InsideBlock inside_block(const Model& model, TransformerStackImpl& stack, std::int64_t layer,
                         const BlockRun& run, std::int64_t position) {
  const TransformerConfig& config = stack.config();
  BlockImpl& block = stack.block(layer);
  Norms norms{.config = config, .position = position, .seen = {}};
  const bool post = config.norm_placement == NormPlacement::kPost;
  const bool at_end = config.norm_placement == NormPlacement::kBranchEnd;
  const Norm none{nullptr};
  at::Tensor x = run.input;
  // The state that a sublayer reads: the norms of the sublayers have one order in all placements.
  const auto before = [&](const char* name, const Norm& norm) {
    return post || at_end ? x : norms(name, norm, x);
  };
  const auto after = [&](const char* name, const Norm& norm, const char* end_name, const Norm& end_norm,
                         const at::Tensor& output, const at::Tensor& added) {
    norms(at_end ? name : end_name, at_end ? norm : end_norm, output);
    x = x + added;
    if (post) x = norms(name, norm, x);
  };
  const at::Tensor attends = before("attention_norm", block.attention_norm);
  const at::Tensor side = x;  // what the feed-forward network reads beside an attention
  after("attention_norm", block.attention_norm, "attention_end_norm", block.attention_end_norm,
        projected(block.attention->out, run.seen.attention_heads), run.seen.attention);
  if (block.cross_attention) {
    before("cross_attention_norm", block.cross_attention_norm);
    after("cross_attention_norm", block.cross_attention_norm, "", none,
          projected(block.cross_attention->out, run.seen.cross_attention_heads), run.seen.cross_attention);
  }
  at::Tensor feeds = attends;
  if (config.sublayer_order == SublayerOrder::kSequential)
    feeds = before("feed_forward_norm", block.feed_forward_norm);
  else if (block.feed_forward_norm) feeds = norms("feed_forward_norm", block.feed_forward_norm, side);
  InsideBlock inside;
  if (block.experts) {
    const auto [weights, chosen] =
        block.experts->router(feeds[0]).softmax(-1, at::kFloat).topk(config.experts_per_token, -1);
    const bool of_chosen = config.expert_weights == ExpertWeights::kOfChosen;
    inside.expert_weights = (of_chosen ? weights / weights.sum(-1, /*keepdim=*/true) : weights).cpu();
    inside.experts = chosen.cpu();
  } else {
    inside.neurons = neurons_of(model, stack, *block.feed_forward, feeds[0][position]);
  }
  const bool ends = at_end || block.feed_forward_end_norm;
  const at::Tensor fed = !ends           ? at::Tensor()
                         : block.experts ? block.experts->forward(feeds)
                                         : block.feed_forward->forward(feeds);
  after("feed_forward_norm", block.feed_forward_norm, "feed_forward_end_norm", block.feed_forward_end_norm,
        fed, run.seen.feed_forward);
  if (layer + 1 == config.num_layers) norms("final_norm", stack.final_norm, run.seen.residual);
  inside.norms = std::move(norms.seen);
  return inside;
}

}  // namespace zoo::analysis
