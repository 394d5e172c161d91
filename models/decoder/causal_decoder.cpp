#include "models/decoder/causal_decoder.h"

#include <cmath>

#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>

#include "models/layers/positions.h"

namespace zoo {
namespace {

// Each position predicts the next token; the last one has nothing to predict.
at::Tensor shift_left(const at::Tensor& labels) {
  at::Tensor targets = labels.new_full(labels.sizes(), -100);
  targets.slice(1, 0, -1).copy_(labels.slice(1, 1));
  return targets;
}

at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& targets) {
  return at::cross_entropy_loss(logits.flatten(0, -2).to(at::kFloat), targets.flatten());
}

std::int64_t count(const torch::nn::Module& module) {
  std::int64_t sum = 0;
  for (const auto& parameter : module.parameters()) sum += parameter.numel();
  return sum;
}

}  // namespace

CausalDecoder::CausalDecoder(const TransformerConfig& config, Head head) : Model(config), head_(head) {
  config.validate();
  TORCH_CHECK(config.shape == Shape::kDecoder, "a model of this kind is a decoder");
  TORCH_CHECK(head == Head::kCausalLm || head == Head::kBase, "a decoder has no ", name_of(head), " head");
  token_embedding = register_module("token_embedding", Embedding(config.vocab_size, config.hidden_size));
  if (config.position == PositionKind::kLearned) {
    position_embedding =
        register_module("position_embedding", Embedding(config.max_positions, config.hidden_size));
  } else if (config.position == PositionKind::kSinusoidal) {
    sinusoids_ = register_buffer("sinusoids", sinusoidal_positions(config.max_positions, config.hidden_size));
  }
  stack = register_module("stack", TransformerStack(config));
  if (head == Head::kCausalLm && !config.tie_word_embeddings) {
    lm_head = register_module("lm_head", Linear(config.hidden_size, config.vocab_size, /*with_bias=*/false));
  }
}

ModelOutput CausalDecoder::forward(const ModelInputs& inputs) {
  const std::int64_t past = inputs.cache != nullptr ? inputs.cache->length() : 0;
  check_inputs(inputs, past);
  StackOutput result = stack(StackInputs{.embeddings = embed(inputs, past),
                                         .attention_mask = inputs.attention_mask,
                                         .positions = inputs.position_ids,
                                         .cache = inputs.cache,
                                         .output_hidden_states = inputs.output_hidden_states,
                                         .output_attentions = inputs.output_attentions});
  ModelOutput output;
  output.hidden_states = std::move(result.hidden_states);
  output.attentions = std::move(result.attentions);
  output.last_hidden_state = std::move(result.hidden);
  if (head_ == Head::kCausalLm) add_logits(inputs, output);
  return output;
}

void CausalDecoder::add_logits(const ModelInputs& inputs, ModelOutput& output) const {
  const at::Tensor& hidden = output.last_hidden_state;
  const at::Tensor& weight = lm_head ? lm_head->weight : token_embedding->weight;
  output.logits = at::linear(inputs.last_logits_only ? hidden.slice(1, -1) : hidden, weight);
  if (inputs.targets.defined()) {
    output.loss = cross_entropy(output.logits, inputs.targets);
  } else if (inputs.labels.defined()) {
    output.loss = cross_entropy(output.logits, shift_left(inputs.labels));
  }
}

at::Tensor CausalDecoder::embed(const ModelInputs& inputs, std::int64_t past) const {
  at::Tensor x = token_embedding->forward(inputs.input_ids);
  const std::int64_t length = inputs.input_ids.size(1);
  if (position_embedding || sinusoids_.defined()) {
    const at::Tensor& table = sinusoids_.defined() ? sinusoids_ : position_embedding->weight;
    if (inputs.position_ids.defined()) {
      x = x + at::embedding(table, inputs.position_ids);
    } else {
      x = x + table.slice(0, past, past + length);
    }
  }
  return config_.embedding_dropout > 0 && is_training() ? at::dropout(x, config_.embedding_dropout, true) : x;
}

void CausalDecoder::check_inputs(const ModelInputs& inputs, std::int64_t past) const {
  const at::Tensor& ids = inputs.input_ids;
  TORCH_CHECK(ids.defined() && ids.dim() == 2 && ids.size(1) > 0, "input_ids must be [batch, length], got ",
              ids.defined() ? ids.sizes() : at::IntArrayRef());
  const bool bounded =
      config_.position == PositionKind::kLearned || config_.position == PositionKind::kSinusoidal;
  TORCH_CHECK(!bounded || past + ids.size(1) <= config_.max_positions, "a sequence of ", past + ids.size(1),
              " tokens is longer than the model's ", config_.max_positions, " positions");
  TORCH_CHECK(!inputs.labels.defined() || inputs.labels.sizes() == ids.sizes(), "labels must be ",
              ids.sizes(), " as input_ids, got ", inputs.labels.sizes());
}

void CausalDecoder::initialize(at::Generator generator) {
  const at::NoGradGuard no_grad;
  const double std = config_.initializer_range;
  const auto draw = [&](Linear& linear, double scale) {
    linear->weight.normal_(0.0, scale, generator);
    if (linear->bias.defined()) linear->bias.zero_();
  };
  const bool scaled = config_.initial_weights == InitialWeights::kScaledResiduals;
  const double residual_std = scaled ? std / std::sqrt(2.0 * static_cast<double>(config_.num_layers)) : std;
  token_embedding->weight.normal_(0.0, std, generator);
  if (position_embedding) position_embedding->weight.normal_(0.0, std, generator);
  for (const auto& module : *stack->blocks) {
    auto& block = *module->as<BlockImpl>();
    block.attention_norm->reset();
    draw(block.attention->qkv, std);
    draw(block.attention->out, residual_std);
    block.feed_forward_norm->reset();
    draw(block.feed_forward->up, std);
    draw(block.feed_forward->down, residual_std);
  }
  if (stack->final_norm) stack->final_norm->reset();
  if (lm_head) draw(lm_head, std);
}

std::vector<std::pair<std::string, std::int64_t>> CausalDecoder::components() const {
  std::vector<std::pair<std::string, std::int64_t>> parts;
  parts.emplace_back("token embedding", count(*token_embedding));
  if (position_embedding) parts.emplace_back("position embedding", count(*position_embedding));
  std::int64_t attention = 0, feed_forward = 0, norms = stack->final_norm ? count(*stack->final_norm) : 0;
  for (const auto& module : *stack->blocks) {
    const auto& block = *module->as<BlockImpl>();
    attention += count(*block.attention);
    feed_forward += count(*block.feed_forward);
    norms += count(*block.attention_norm) + count(*block.feed_forward_norm);
  }
  parts.emplace_back("attention", attention);
  parts.emplace_back("feed-forward", feed_forward);
  parts.emplace_back("norms", norms);
  if (head_ == Head::kBase) return parts;
  parts.emplace_back(lm_head ? "output projection" : "output projection (tied)",
                     lm_head ? count(*lm_head) : 0);
  return parts;
}

}  // namespace zoo
