#include "models/decoder/decoder.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index.h>

#include "models/heads/vocabulary.h"
#include "models/layers/experts.h"

namespace zoo {

DecoderModel::DecoderModel(const TransformerConfig& config) : Model(config) {
  config.validate();
  TORCH_CHECK(config.shape == Shape::kDecoder, "a decoder was given the shape of another model");
  embeddings = register_module("embeddings", Embeddings(config));
  stack = register_module("stack", TransformerStack(config));
}

ModelOutput DecoderModel::forward(const ModelInputs& inputs) {
  check_stacks(inputs.interventions, /*has_encoder=*/false, /*has_decoder=*/true);
  const bool labelled = inputs.labels.defined() || inputs.targets.defined();
  const std::int64_t past = inputs.cache != nullptr ? inputs.cache->length() : 0;
  at::Tensor positions = inputs.position_ids;
  if (!positions.defined() && inputs.attention_mask.defined() &&
      config_.position_count == PositionCount::kNotMasked) {
    const at::Tensor kept = inputs.attention_mask.to(at::kLong);
    positions = (kept.cumsum(1) * kept - 1).slice(1, past);
  }
  const at::Tensor embedded =
      embeddings(EmbeddingInputs{.ids = inputs.input_ids, .position_ids = positions, .past = past});
  StackOutput result = stack(StackInputs{
      .embeddings = embedded,
      .attention_mask = inputs.attention_mask,
      .positions = inputs.position_ids,
      .cache = inputs.cache,
      .output_hidden_states = inputs.output_hidden_states,
      .output_attentions = inputs.output_attentions,
      .output_heads = inputs.output_heads,
      .output_activations = inputs.output_activations,
      .output_router_logits = balances_experts() && config_.router_loss && inputs.loss.router && labelled,
      .interventions = inputs.interventions});
  ModelOutput output;
  output.hidden_states = std::move(result.hidden_states);
  output.attentions = std::move(result.attentions);
  output.heads = std::move(result.heads);
  output.activations = std::move(result.activations);
  output.router_logits = std::move(result.router_logits);
  output.last_hidden_state = std::move(result.hidden);
  apply_head(inputs, output);
  return output;
}

ModelParts DecoderModel::parts() const {
  return {.embeddings = embeddings.ptr(), .decoder = stack.ptr()};
}

void DecoderModel::apply_head(const ModelInputs& inputs, ModelOutput&) {
  TORCH_CHECK(!inputs.labels.defined() && !inputs.targets.defined(),
              "a bare model has no loss: labels need a head");
}

DecoderForCausalLm::DecoderForCausalLm(const TransformerConfig& config) : DecoderModel(config) {
  if (config.tie_word_embeddings) return;
  lm_head = register_module("lm_head", Linear(config.hidden_size, config.vocab_size, config.lm_head_bias));
}

void DecoderForCausalLm::apply_head(const ModelInputs& inputs, ModelOutput& output) {
  const at::Tensor& hidden = output.last_hidden_state;
  at::Tensor targets = inputs.targets;
  if (!targets.defined() && inputs.labels.defined()) {
    TORCH_CHECK(inputs.labels.sizes() == inputs.input_ids.sizes(), "labels must be ",
                inputs.input_ids.sizes(), " as input_ids, got ", inputs.labels.sizes());
    targets = shift_left(inputs.labels);
  }
  const VocabularyHead head{.weight = output_weight(),
                            .bias = output_bias(),
                            .scale = config_.output_scale(),
                            .softcap = config_.logits_softcap};
  if (targets.defined() && inputs.loss_only) {
    output.loss = head.loss(hidden, targets, inputs.loss);
  } else {
    output.logits = head.logits(inputs.last_logits_only ? hidden.slice(1, -1) : hidden);
    if (targets.defined()) output.loss = cross_entropy(output.logits, targets, inputs.loss);
  }
  if (output.router_logits.empty()) return;
  const at::Tensor balance =
      router_loss(output.router_logits, config_.experts_per_token, inputs.attention_mask);
  output.loss = output.loss + config_.router_loss_weight * balance;
}

at::Tensor DecoderForCausalLm::output_weight() const {
  return lm_head ? lm_head->adapted_weight() : embeddings->token->weight;
}

at::Tensor DecoderForCausalLm::output_bias() const {
  return lm_head ? lm_head->bias : at::Tensor();
}

ModelParts DecoderForCausalLm::parts() const {
  ModelParts parts = DecoderModel::parts();
  parts.head = {.weight = output_weight(),
                .bias = output_bias(),
                .scale = config_.output_scale(),
                .softcap = config_.logits_softcap};
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

ModelParts DecoderForSequenceClassification::parts() const {
  ModelParts parts = DecoderModel::parts();
  parts.head = {.tokens = HeadParts::Tokens::kLast, .weight = score->adapted_weight()};
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
