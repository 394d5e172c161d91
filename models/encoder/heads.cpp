#include "models/encoder/heads.h"

#include <ATen/ops/binary_cross_entropy_with_logits.h>

#include "models/heads/vocabulary.h"
#include "models/layers/parameter.h"

namespace zoo::encoder {
namespace {

void check_sentence_labels(const at::Tensor& labels, const at::Tensor& logits) {
  TORCH_CHECK(labels.dim() == 1 && labels.size(0) == logits.size(0), "labels of next sentences must be [",
              logits.size(0), "], got ", labels.sizes());
}

Activation activation_of(SentenceVector vector) {
  switch (vector) {
    case SentenceVector::kRelu:
      return Activation::kRelu;
    case SentenceVector::kGelu:
    case SentenceVector::kPlainGelu:
      return Activation::kGelu;
    default:
      return Activation::kTanh;
  }
}

// A transform whose weights are `owner`'s.
Transform transform_of(torch::nn::Module& owner, const TransformerConfig& config, const Style& style) {
  const std::int64_t width = config.embedding_width();
  const auto given = style.prediction_activation.value_or(config.activation);
  // A gated feed-forward's activation is that of its gate.
  return {owner.register_module("prediction_dense", Linear(config.hidden_size, width, style.transform_bias)),
          owner.register_module("prediction_norm",
                                Norm(config.norm, width, config.layer_norm_eps, config.norm_bias)),
          gate_of(given)};
}

Transform transform_of_classifier(torch::nn::Module& owner, const TransformerConfig& config,
                                  const Style& style) {
  return style.transforms_all ? transform_of(owner, config, style) : Transform();
}

// The projection to logits of each token, with the transform before it, if there is one.
HeadParts token_parts(const Transform& transform, const Linear& projection) {
  HeadParts parts{.weight = projection->adapted_weight(), .bias = projection->bias};
  if (!transform.dense) return parts;
  parts.dense = transform.dense.ptr();
  parts.activation = transform.activation;
  parts.norm = transform.norm.ptr();
  return parts;
}

}  // namespace

at::Tensor Transform::operator()(const at::Tensor& x) const {
  return dense ? norm->forward(activate(dense->forward(x), activation)) : x;
}

MaskedLm::MaskedLm(const TransformerConfig& config, const Style& style, bool with_pooler)
    : EncoderModel(config, with_pooler), transform_(transform_of(*this, config, style)) {
  const std::int64_t width = config.embedding_width();
  const bool tied = config.tie_word_embeddings, tied_bias = tied || config.tie_prediction_bias;
  if (!tied) decoder = register_module("decoder", Linear(width, config.vocab_size, !tied_bias));
  if (tied_bias || style.keeps_spare_bias) {
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
  const at::Tensor x = transform_(hidden);
  TORCH_CHECK(!labels.defined() || inputs.labels.sizes() == inputs.input_ids.sizes(), "labels must be ",
              inputs.input_ids.sizes(), " as input_ids, got ", inputs.labels.sizes());
  const VocabularyHead head{projection(), projection_bias()};
  if (labels.defined() && inputs.loss_only) {
    output.loss = head.loss(x, labels, inputs.loss);
    return;
  }
  output.logits = head.logits(x);
  if (labels.defined()) output.loss = cross_entropy(output.logits, labels, inputs.loss);
}

HeadParts MaskedLm::head_parts() const {
  return {.dense = transform_.dense.ptr(),
          .activation = transform_.activation,
          .norm = transform_.norm.ptr(),
          .weight = projection(),
          .bias = projection_bias()};
}

at::Tensor MaskedLm::projection() const {
  return decoder ? decoder->adapted_weight() : embeddings->token->weight;
}

at::Tensor MaskedLm::projection_bias() const {
  return decoder && decoder->bias.defined() ? decoder->bias : prediction_bias;
}

SequenceClassifier::SequenceClassifier(const TransformerConfig& config, const Style& style)
    : EncoderModel(config, style.sentence_vector == SentenceVector::kPooler && !style.transforms_all),
      sentence_vector_(style.sentence_vector),
      transform_(transform_of_classifier(*this, config, style)) {
  if (!pooler && !transform_.dense)
    sentence_dense = register_module("sentence_dense", Linear(config.hidden_size, config.hidden_size));
  sentence_classifier = register_module("sentence_classifier", Linear(config.hidden_size, config.num_labels));
}

void SequenceClassifier::apply_head(const ModelInputs& inputs, ModelOutput& output) {
  const double rate = config_.classifier_dropout;
  at::Tensor vector = pooler ? output.pooler_output : pooled(inputs, output.last_hidden_state);
  if (sentence_dense) {
    const bool drops = sentence_vector_ == SentenceVector::kTanh || sentence_vector_ == SentenceVector::kGelu;
    vector =
        activate(sentence_dense(drops ? dropout(vector, rate) : vector), activation_of(sentence_vector_));
  }
  vector = transform_(vector);
  output.logits = sentence_classifier(dropout(vector, rate));
  if (inputs.labels.defined())
    output.loss = sequence_loss(output.logits, inputs.labels, config_, inputs.loss);
}

// [B, T, C] to [B, C]; a row whose tokens are all hidden gives zeros.
at::Tensor SequenceClassifier::pooled(const ModelInputs& inputs, const at::Tensor& hidden) const {
  if (config_.sentence_pooling == SentencePooling::kFirst) return hidden.select(1, 0);
  if (!inputs.attention_mask.defined()) return hidden.mean(1);
  const at::Tensor kept = inputs.attention_mask.to(hidden.device()).ne(0).unsqueeze(-1);
  return hidden.masked_fill(kept.logical_not(), 0.0).sum(1) / kept.sum(1).clamp_min(1);
}

HeadParts SequenceClassifier::head_parts() const {
  HeadParts parts = token_parts(transform_, sentence_classifier);
  const bool first = config_.sentence_pooling == SentencePooling::kFirst;
  parts.tokens = first ? HeadParts::Tokens::kFirst : HeadParts::Tokens::kMean;
  if (transform_.dense) return parts;
  parts.dense = pooler ? pooler->dense.ptr() : sentence_dense.ptr();
  parts.activation = activation_of(sentence_vector_);
  return parts;
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

ReplacedTokens::ReplacedTokens(const TransformerConfig& config)
    : EncoderModel(config, /*with_pooler=*/false) {
  discriminator_dense =
      register_module("discriminator_dense", Linear(config.hidden_size, config.hidden_size));
  discriminator = register_module("discriminator", Linear(config.hidden_size, 1));
}

void ReplacedTokens::apply_head(const ModelInputs& inputs, ModelOutput& output) {
  const at::Tensor dense = activate(discriminator_dense(output.last_hidden_state), config_.activation);
  output.logits = discriminator(dense).squeeze(-1);
  if (!inputs.labels.defined()) return;
  TORCH_CHECK(inputs.labels.sizes() == inputs.input_ids.sizes(), "labels must be ", inputs.input_ids.sizes(),
              " as input_ids, got ", inputs.labels.sizes());
  at::Tensor counted = inputs.labels.ne(-100);
  if (inputs.attention_mask.defined()) counted = counted & inputs.attention_mask.ne(0);
  output.loss = at::binary_cross_entropy_with_logits(output.logits.masked_select(counted).to(at::kFloat),
                                                     inputs.labels.masked_select(counted).to(at::kFloat));
}

HeadParts ReplacedTokens::head_parts() const {
  return {.dense = discriminator_dense.ptr(),
          .activation = config_.activation,
          .weight = discriminator->adapted_weight(),
          .bias = discriminator->bias,
          .is_flag = true};
}

TokenClassifier::TokenClassifier(const TransformerConfig& config, const Style& style)
    : EncoderModel(config, /*with_pooler=*/false), transform_(transform_of_classifier(*this, config, style)) {
  token_classifier = register_module("token_classifier", Linear(config.hidden_size, config.num_labels));
}

void TokenClassifier::apply_head(const ModelInputs& inputs, ModelOutput& output) {
  output.logits = token_classifier(dropout(transform_(output.last_hidden_state), config_.token_dropout));
  if (!inputs.labels.defined()) return;
  TORCH_CHECK(inputs.labels.sizes() == inputs.input_ids.sizes(), "labels must be ", inputs.input_ids.sizes(),
              " as input_ids, got ", inputs.labels.sizes());
  output.loss = cross_entropy(output.logits, inputs.labels, inputs.loss);
}

HeadParts TokenClassifier::head_parts() const {
  return token_parts(transform_, token_classifier);
}

QuestionAnswering::QuestionAnswering(const TransformerConfig& config, const Style& style)
    : EncoderModel(config, /*with_pooler=*/false), transform_(transform_of_classifier(*this, config, style)) {
  TORCH_CHECK(config.num_labels == 2, "question answering has 2 labels, start and end, got ",
              config.num_labels);
  span = register_module("span", Linear(config.hidden_size, 2));
}

void QuestionAnswering::apply_head(const ModelInputs& inputs, ModelOutput& output) {
  const at::Tensor hidden = transform_(output.last_hidden_state);
  const auto logits = span(dropout(hidden, config_.answer_dropout)).unbind(-1);
  output.start_logits = logits[0];
  output.end_logits = logits[1];
  if (inputs.labels.defined()) output.loss = span_loss(logits[0], logits[1], inputs.labels);
}

HeadParts QuestionAnswering::head_parts() const {
  HeadParts parts = token_parts(transform_, span);
  parts.is_span = true;
  return parts;
}

}  // namespace zoo::encoder
