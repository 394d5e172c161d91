#include "models/encoder/encoder.h"

#include <ATen/ops/tanh.h>

#include "data/base/error.h"
#include "models/layers/parameter.h"

namespace zoo::encoder {

PoolerImpl::PoolerImpl(std::int64_t hidden_size) {
  dense = register_module("dense", Linear(hidden_size, hidden_size));
}

at::Tensor PoolerImpl::forward(const at::Tensor& hidden) { return at::tanh(dense(hidden.select(1, 0))); }

EncoderModel::EncoderModel(const TransformerConfig& config, Head head, const Style& style)
    : Model(config), head_(head), style_(style) {
  config.validate();
  TORCH_CHECK(config.shape == Shape::kEncoder, "a model of this kind is an encoder");
  embeddings = register_module("embeddings", Embeddings(config));
  stack = register_module("stack", TransformerStack(config));
  const bool classifies_pooled =
      head == Head::kSequenceClassification && !style.transforms_all && !style.sentence_layer;
  if (classifies_pooled || head == Head::kNextSentence || head == Head::kPretraining ||
      (head == Head::kBase && style.has_pooler))
    pooler = register_module("pooler", Pooler(config.hidden_size));
  add_head();
}

// In the order of the families' weights, which decides how new ones are drawn.
void EncoderModel::add_head() {
  const std::int64_t width = config_.hidden_size;
  switch (head_) {
    case Head::kBase: break;
    case Head::kMaskedLm: add_vocabulary(); break;
    case Head::kPretraining: add_vocabulary(); [[fallthrough]];
    case Head::kNextSentence: next_sentence = register_module("next_sentence", Linear(width, 2)); break;
    case Head::kSequenceClassification:
      if (style_.transforms_all) add_transform();
      else if (!pooler) dense = register_module("sentence_dense", Linear(width, width));
      projection = register_module("sentence_classifier", Linear(width, config_.num_labels));
      break;
    case Head::kTokenClassification:
      if (style_.transforms_all) add_transform();
      projection = register_module("token_classifier", Linear(width, config_.num_labels));
      break;
    case Head::kQuestionAnswering:
      if (style_.transforms_all) add_transform();
      TORCH_CHECK(config_.num_labels == 2, "question answering has 2 labels, start and end, got ",
                  config_.num_labels);
      projection = register_module("span", Linear(width, 2));
      break;
    case Head::kReplacedTokens:
      dense = register_module("discriminator_dense", Linear(width, width));
      projection = register_module("discriminator", Linear(width, 1));
      break;
    default: TORCH_CHECK(false, "an encoder has no ", name_of(head_), " head");
  }
}

void EncoderModel::add_transform() {
  const std::int64_t width = config_.embedding_width();
  dense = register_module("prediction_dense", Linear(config_.hidden_size, width, style_.transform_bias));
  norm = register_module("prediction_norm",
                         Norm(config_.norm, width, config_.layer_norm_eps, config_.norm_bias));
}

void EncoderModel::add_vocabulary() {
  add_transform();
  const bool tied = config_.tie_word_embeddings, tied_bias = tied || config_.tie_prediction_bias;
  if (!tied)
    projection =
        register_module("decoder", Linear(config_.embedding_width(), config_.vocab_size, !tied_bias));
  if (!tied_bias && !style_.keeps_spare_bias) return;
  prediction_bias = register_parameter("prediction_bias", make_parameter({config_.vocab_size}));
  const at::NoGradGuard no_grad;
  if (parameters_want_default()) prediction_bias.zero_();
}

ModelOutput EncoderModel::forward(const ModelInputs& inputs) {
  check_stacks(inputs.interventions, /*has_encoder=*/true, /*has_decoder=*/false);
  TORCH_CHECK(inputs.documents.empty(), "rows of several documents are for decoders");
  const at::Tensor embedded = embeddings(EmbeddingInputs{
      .ids = inputs.input_ids, .position_ids = inputs.position_ids, .token_type_ids = inputs.token_type_ids});
  ModelOutput output = model_output_of(stack(observing(
      StackInputs{
          .embeddings = embedded, .attention_mask = inputs.attention_mask, .positions = inputs.position_ids},
      inputs)));
  if (pooler && head_ == Head::kBase) output.pooler_output = pooler(output.last_hidden_state);
  run(head_parts(), inputs, output);
  if (head_ != Head::kPretraining) return output;
  ModelOutput sentences{.last_hidden_state = output.last_hidden_state};
  run(sentence_parts(), {.labels = inputs.sentence_labels}, sentences);
  output.sentence_logits = sentences.logits;
  if (!sentences.loss.defined()) return output;
  output.loss = output.loss.defined() ? output.loss + sentences.loss : sentences.loss;
  return output;
}

HeadParts EncoderModel::sentence_parts() const {
  const bool drops = head_ == Head::kPretraining && style_.drops_sentence_order;
  return {.tokens = HeadParts::Tokens::kFirst,
          .labels = HeadParts::Labels::kNextSentence,
          .dense = pooler->dense.ptr(),
          .weight = next_sentence->adapted_weight(),
          .bias = next_sentence->bias,
          .dropout = drops ? config_.classifier_dropout : 0.0};
}

HeadParts EncoderModel::head_parts() const {
  HeadParts parts;
  if (dense) parts.dense = dense.ptr();
  if (norm) {
    parts.norm = norm.ptr();
    // A gated feed-forward's activation is that of its gate.
    parts.activation = gate_of(style_.prediction_activation.value_or(config_.activation));
  }
  if (projection) {
    parts.weight = projection->adapted_weight();
    parts.bias = projection->bias;
  }
  switch (head_) {
    case Head::kMaskedLm:
    case Head::kPretraining:
      parts.labels = HeadParts::Labels::kTokens;
      if (!projection) parts.weight = embeddings->token->weight;
      if (!parts.bias.defined()) parts.bias = prediction_bias;
      break;
    case Head::kNextSentence: return sentence_parts();
    case Head::kSequenceClassification: {
      const bool first = config_.sentence_pooling == SentencePooling::kFirst;
      parts.tokens = first ? HeadParts::Tokens::kFirst : HeadParts::Tokens::kMean;
      parts.dropout = config_.classifier_dropout;
      if (norm) break;
      if (pooler) parts.dense = pooler->dense.ptr();
      if (!style_.sentence_layer) break;
      parts.activation = style_.sentence_layer->activation;
      if (style_.sentence_layer->drops) parts.dense_dropout = config_.classifier_dropout;
      break;
    }
    case Head::kTokenClassification: parts.dropout = config_.token_dropout; break;
    case Head::kQuestionAnswering:
      parts.dropout = config_.answer_dropout;
      parts.is_span = true;
      break;
    case Head::kReplacedTokens:
      parts.activation = config_.activation;
      parts.is_flag = true;
      break;
    default: break;
  }
  return parts;
}

ModelParts EncoderModel::parts() const {
  return {.embeddings = embeddings.ptr(),
          .encoder = stack.ptr(),
          .head = head_parts(),
          .sentence_head = head_ == Head::kPretraining ? sentence_parts() : HeadParts()};
}

void EncoderModel::remove_pooler() {
  if (pooler) unregister_module("pooler");
  pooler = nullptr;
}

decltype(Family::build) builder(const Style& style) {
  return [style](const TransformerConfig& config, Head head) {
    return std::make_shared<EncoderModel>(config, head, style);
  };
}

decltype(Family::build) builder_beside(decltype(Family::build) others, const std::string& name) {
  return [others = std::move(others), name](const TransformerConfig& config, Head head) {
    if (config.shape != Shape::kEncoder) return others(config, head);
    if (head != Head::kBase) throw Error(name, " has no ", name_of(head), " head (it has: base)");
    return builder({.has_pooler = false})(config, head);
  };
}

}  // namespace zoo::encoder
