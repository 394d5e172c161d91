#include "models/decoder/decoder.h"

#include <cmath>

#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index.h>

#include "models/heads/vocabulary.h"
#include "models/layers/dropout.h"
#include "models/layers/initial_weights.h"
#include "models/layers/positions.h"

namespace zoo {
namespace {

std::int64_t count(const torch::nn::Module& module) {
  std::int64_t sum = 0;
  for (const auto& parameter : module.parameters()) sum += parameter.numel();
  return sum;
}

}  // namespace

DecoderModel::DecoderModel(const TransformerConfig& config) : Model(config) {
  config.validate();
  TORCH_CHECK(config.shape == Shape::kDecoder, "a decoder was given the shape of another model");
  const std::int64_t frozen_row = config.trains_padding ? -1 : config.pad_token_id;
  token_embedding =
      register_module("token_embedding", Embedding(config.vocab_size, config.hidden_size, frozen_row));
  if (config.position == PositionKind::kLearned) {
    position_embedding =
        register_module("position_embedding", Embedding(config.max_positions, config.hidden_size));
  } else if (config.position == PositionKind::kSinusoidal) {
    sinusoids_ = register_buffer("sinusoids", sinusoidal_positions(config.max_positions, config.hidden_size));
  }
  stack = register_module("stack", TransformerStack(config));
}

ModelOutput DecoderModel::forward(const ModelInputs& inputs) {
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
  apply_head(inputs, output);
  return output;
}

void DecoderModel::apply_head(const ModelInputs& inputs, ModelOutput&) {
  TORCH_CHECK(!inputs.labels.defined() && !inputs.targets.defined(),
              "a bare model has no loss: labels need a head");
}

at::Tensor DecoderModel::embed(const ModelInputs& inputs, std::int64_t past) const {
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
  return config_.embedding_dropout > 0 && is_training() ? dropout(x, config_.embedding_dropout) : x;
}

void DecoderModel::check_inputs(const ModelInputs& inputs, std::int64_t past) const {
  const at::Tensor& ids = inputs.input_ids;
  TORCH_CHECK(ids.defined() && ids.dim() == 2 && ids.size(1) > 0, "input_ids must be [batch, length], got ",
              ids.defined() ? ids.sizes() : at::IntArrayRef());
  const bool bounded =
      config_.position == PositionKind::kLearned || config_.position == PositionKind::kSinusoidal;
  // Positions that are given are looked up: beside padding there may be more places than positions.
  TORCH_CHECK(!bounded || inputs.position_ids.defined() || past + ids.size(1) <= config_.max_positions,
              "a sequence of ", past + ids.size(1), " tokens is longer than the model's ",
              config_.max_positions, " positions");
}

void DecoderModel::initialize(at::Generator generator) {
  const double std = config_.initializer_range;
  const bool scaled = config_.initial_weights == InitialWeights::kScaledResiduals;
  const double residual_std = scaled ? std / std::sqrt(2.0 * static_cast<double>(config_.num_layers)) : std;
  draw_normal(*token_embedding, std, generator);
  if (position_embedding) draw_normal(*position_embedding, std, generator);
  if (stack->position_bias) draw_normal(*stack->position_bias, std, generator);
  for (const auto& module : *stack->blocks) {
    auto& block = *module->as<BlockImpl>();
    block.attention_norm->reset();
    draw_normal(*block.attention->qkv, std, generator);
    draw_normal(*block.attention->out, residual_std, generator);
    for (Embedding table : {block.attention->relative_keys, block.attention->relative_values}) {
      if (table) draw_normal(*table, std, generator);
    }
    block.feed_forward_norm->reset();
    draw_normal(*block.feed_forward->up, std, generator);
    draw_normal(*block.feed_forward->down, residual_std, generator);
  }
  if (stack->final_norm) stack->final_norm->reset();
}

std::vector<std::pair<std::string, std::int64_t>> DecoderModel::components() const {
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
  return parts;
}

DecoderForCausalLm::DecoderForCausalLm(const TransformerConfig& config) : DecoderModel(config) {
  if (config.tie_word_embeddings) return;
  lm_head = register_module("lm_head", Linear(config.hidden_size, config.vocab_size, /*with_bias=*/false));
}

void DecoderForCausalLm::apply_head(const ModelInputs& inputs, ModelOutput& output) {
  const at::Tensor& hidden = output.last_hidden_state;
  at::Tensor targets = inputs.targets;
  if (!targets.defined() && inputs.labels.defined()) {
    TORCH_CHECK(inputs.labels.sizes() == inputs.input_ids.sizes(), "labels must be ",
                inputs.input_ids.sizes(), " as input_ids, got ", inputs.labels.sizes());
    targets = shift_left(inputs.labels);
  }
  const VocabularyHead head{output_weight(), {}};
  if (targets.defined() && inputs.loss_only) {
    output.loss = head.loss(hidden, targets, inputs.loss);
    return;
  }
  output.logits = head.logits(inputs.last_logits_only ? hidden.slice(1, -1) : hidden);
  if (targets.defined()) output.loss = cross_entropy(output.logits, targets, inputs.loss);
}

const at::Tensor& DecoderForCausalLm::output_weight() const {
  return lm_head ? lm_head->weight : token_embedding->weight;
}

void DecoderForCausalLm::initialize(at::Generator generator) {
  DecoderModel::initialize(generator);
  if (lm_head) draw_normal(*lm_head, config_.initializer_range, generator);
}

std::vector<std::pair<std::string, std::int64_t>> DecoderForCausalLm::components() const {
  auto parts = DecoderModel::components();
  parts.emplace_back(lm_head ? "output projection" : "output projection (tied)",
                     lm_head ? count(*lm_head) : 0);
  return parts;
}

DecoderForSequenceClassification::DecoderForSequenceClassification(const TransformerConfig& config)
    : DecoderModel(config) {
  score = register_module("score", Linear(config.hidden_size, config.num_labels, /*with_bias=*/false));
}

void DecoderForSequenceClassification::apply_head(const ModelInputs& inputs, ModelOutput& output) {
  const at::Tensor &hidden = output.last_hidden_state, &ids = inputs.input_ids;
  TORCH_CHECK(config_.pad_token_id >= 0 || ids.size(0) == 1,
              "to classify several sequences at once, the configuration must name a pad_token_id");
  at::Tensor last = at::full({ids.size(0)}, ids.size(1) - 1, ids.options());
  if (config_.pad_token_id >= 0) {
    last = (at::arange(ids.size(1), ids.options()) * ids.ne(config_.pad_token_id)).argmax(-1);
  }
  const at::Tensor rows = at::arange(ids.size(0), ids.options());
  output.logits = score(hidden.index({rows, last}));
  if (inputs.labels.defined())
    output.loss = sequence_loss(output.logits, inputs.labels, config_, inputs.loss);
}

void DecoderForSequenceClassification::initialize(at::Generator generator) {
  DecoderModel::initialize(generator);
  draw_normal(*score, config_.initializer_range, generator);
}

std::vector<std::pair<std::string, std::int64_t>> DecoderForSequenceClassification::components() const {
  auto parts = DecoderModel::components();
  parts.emplace_back("classifier", count(*score));
  return parts;
}

std::shared_ptr<Model> build_decoder(const TransformerConfig& config, Head head) {
  switch (head) {
    case Head::kCausalLm:
      return std::make_shared<DecoderForCausalLm>(config);
    case Head::kBase:
      return std::make_shared<DecoderModel>(config);
    case Head::kSequenceClassification:
      return std::make_shared<DecoderForSequenceClassification>(config);
    default:
      TORCH_CHECK(false, "a decoder has no ", name_of(head), " head");
  }
}

}  // namespace zoo
