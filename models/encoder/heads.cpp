#include "models/encoder/heads.h"

#include <ATen/ops/relu.h>
#include <ATen/ops/tanh.h>

#include "models/heads/vocabulary.h"
#include "models/layers/parameter.h"

namespace zoo::encoder {
namespace {

void check_sentence_labels(const at::Tensor& labels, const at::Tensor& logits) {
  TORCH_CHECK(labels.dim() == 1 && labels.size(0) == logits.size(0), "labels of next sentences must be [",
              logits.size(0), "], got ", labels.sizes());
}

}  // namespace

MaskedLm::MaskedLm(const TransformerConfig& config, const Style& style, bool with_pooler)
    : EncoderModel(config, with_pooler),
      activation_(style.prediction_activation.value_or(config.activation)) {
  const std::int64_t width = config.embedding_width();
  const bool tied = config.tie_word_embeddings;
  prediction_dense = register_module("prediction_dense", Linear(config.hidden_size, width));
  prediction_norm =
      register_module("prediction_norm", Norm(config.norm, width, config.layer_norm_eps, config.norm_bias));
  if (!tied) decoder = register_module("decoder", Linear(width, config.vocab_size));
  if (tied || style.keeps_spare_bias) {
    prediction_bias = register_parameter("prediction_bias", make_parameter({config.vocab_size}));
    const at::NoGradGuard no_grad;
    if (parameters_want_default()) prediction_bias.zero_();
  }
}

void MaskedLm::apply_head(const ModelInputs& inputs, ModelOutput& output) {
  at::Tensor hidden = output.last_hidden_state, labels = inputs.labels;
  if (inputs.label_positions.defined()) {
    TORCH_CHECK(labels.defined(), "label_positions are given without labels");
    hidden = hidden.flatten(0, 1).index_select(0, inputs.label_positions);  // [B, T, C] -> [N, C]
    labels = labels.flatten().index_select(0, inputs.label_positions);
  }
  const at::Tensor x = prediction_norm(activate(prediction_dense(hidden), activation_));
  TORCH_CHECK(!labels.defined() || inputs.labels.sizes() == inputs.input_ids.sizes(), "labels must be ",
              inputs.input_ids.sizes(), " as input_ids, got ", inputs.labels.sizes());
  const VocabularyHead head = decoder ? VocabularyHead{decoder->adapted_weight(), decoder->bias}
                                      : VocabularyHead{embeddings->token->weight, prediction_bias};
  if (labels.defined() && inputs.loss_only) {
    output.loss = head.loss(x, labels, inputs.loss);
    return;
  }
  output.logits = head.logits(x);
  if (labels.defined()) output.loss = cross_entropy(output.logits, labels, inputs.loss);
}

HeadParts MaskedLm::head_parts() const {
  return {.dense = prediction_dense.ptr(),
          .activation = activation_,
          .norm = prediction_norm.ptr(),
          .weight = decoder ? decoder->adapted_weight() : embeddings->token->weight,
          .bias = decoder ? decoder->bias : prediction_bias};
}

SequenceClassifier::SequenceClassifier(const TransformerConfig& config, const Style& style)
    : EncoderModel(config, style.sentence_vector == SentenceVector::kPooler),
      sentence_vector_(style.sentence_vector) {
  if (!pooler)
    sentence_dense = register_module("sentence_dense", Linear(config.hidden_size, config.hidden_size));
  sentence_classifier = register_module("sentence_classifier", Linear(config.hidden_size, config.num_labels));
}

void SequenceClassifier::apply_head(const ModelInputs& inputs, ModelOutput& output) {
  const double rate = config_.classifier_dropout;
  at::Tensor vector = pooler ? output.pooler_output : output.last_hidden_state.select(1, 0);
  if (sentence_vector_ == SentenceVector::kTanh) {
    vector = at::tanh(sentence_dense(dropout(vector, rate)));
  } else if (sentence_vector_ == SentenceVector::kRelu) {
    vector = at::relu(sentence_dense(vector));
  }
  output.logits = sentence_classifier(dropout(vector, rate));
  if (inputs.labels.defined())
    output.loss = sequence_loss(output.logits, inputs.labels, config_, inputs.loss);
}

HeadParts SequenceClassifier::head_parts() const {
  const bool relu = sentence_vector_ == SentenceVector::kRelu;
  return {.tokens = HeadParts::Tokens::kFirst,
          .dense = pooler ? pooler->dense.ptr() : sentence_dense.ptr(),
          .activation = relu ? Activation::kRelu : Activation::kTanh,
          .weight = sentence_classifier->adapted_weight(),
          .bias = sentence_classifier->bias};
}

NextSentence::NextSentence(const TransformerConfig& config) : EncoderModel(config, /*with_pooler=*/true) {
  next_sentence = register_module("next_sentence", Linear(config.hidden_size, 2));
}

void NextSentence::apply_head(const ModelInputs& inputs, ModelOutput& output) {
  output.logits = next_sentence(output.pooler_output);
  if (!inputs.labels.defined()) return;
  check_sentence_labels(inputs.labels, output.logits);
  output.loss = cross_entropy(output.logits, inputs.labels);
}

HeadParts NextSentence::head_parts() const {
  return {.tokens = HeadParts::Tokens::kFirst,
          .dense = pooler->dense.ptr(),
          .weight = next_sentence->adapted_weight(),
          .bias = next_sentence->bias};
}

Pretraining::Pretraining(const TransformerConfig& config, const Style& style)
    : MaskedLm(config, style, /*with_pooler=*/true),
      sentence_dropout_(style.drops_sentence_order ? config.classifier_dropout : 0.0) {
  next_sentence = register_module("next_sentence", Linear(config.hidden_size, 2));
}

void Pretraining::apply_head(const ModelInputs& inputs, ModelOutput& output) {
  MaskedLm::apply_head(inputs, output);
  output.sentence_logits = next_sentence(dropout(output.pooler_output, sentence_dropout_));
  if (!inputs.sentence_labels.defined()) return;
  check_sentence_labels(inputs.sentence_labels, output.sentence_logits);
  const at::Tensor loss = cross_entropy(output.sentence_logits, inputs.sentence_labels);
  output.loss = output.loss.defined() ? output.loss + loss : loss;
}

ModelParts Pretraining::parts() const {
  ModelParts parts = MaskedLm::parts();
  parts.sentence_head = {.tokens = HeadParts::Tokens::kFirst,
                         .dense = pooler->dense.ptr(),
                         .weight = next_sentence->adapted_weight(),
                         .bias = next_sentence->bias};
  return parts;
}

TokenClassifier::TokenClassifier(const TransformerConfig& config)
    : EncoderModel(config, /*with_pooler=*/false) {
  token_classifier = register_module("token_classifier", Linear(config.hidden_size, config.num_labels));
}

void TokenClassifier::apply_head(const ModelInputs& inputs, ModelOutput& output) {
  output.logits = token_classifier(dropout(output.last_hidden_state, config_.token_dropout));
  if (!inputs.labels.defined()) return;
  TORCH_CHECK(inputs.labels.sizes() == inputs.input_ids.sizes(), "labels must be ", inputs.input_ids.sizes(),
              " as input_ids, got ", inputs.labels.sizes());
  output.loss = cross_entropy(output.logits, inputs.labels, inputs.loss);
}

HeadParts TokenClassifier::head_parts() const {
  return {.weight = token_classifier->adapted_weight(), .bias = token_classifier->bias};
}

QuestionAnswering::QuestionAnswering(const TransformerConfig& config)
    : EncoderModel(config, /*with_pooler=*/false) {
  TORCH_CHECK(config.num_labels == 2, "question answering has 2 labels, start and end, got ",
              config.num_labels);
  span = register_module("span", Linear(config.hidden_size, 2));
}

void QuestionAnswering::apply_head(const ModelInputs& inputs, ModelOutput& output) {
  const auto logits = span(dropout(output.last_hidden_state, config_.answer_dropout)).unbind(-1);
  output.start_logits = logits[0];
  output.end_logits = logits[1];
  if (inputs.labels.defined()) output.loss = span_loss(logits[0], logits[1], inputs.labels);
}

HeadParts QuestionAnswering::head_parts() const {
  return {.weight = span->adapted_weight(), .bias = span->bias, .is_span = true};
}

}  // namespace zoo::encoder
