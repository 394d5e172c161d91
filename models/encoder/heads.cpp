#include "models/encoder/heads.h"

#include "models/layers/parameter.h"

namespace zoo::encoder {
namespace {

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

// The projection to logits of each token after dropout, with the transform before them, if there is one.
HeadParts token_parts(const Transform& transform, const Linear& projection, double dropout) {
  HeadParts parts{.weight = projection->adapted_weight(), .bias = projection->bias, .dropout = dropout};
  if (!transform.dense) return parts;
  parts.dense = transform.dense.ptr();
  parts.activation = transform.activation;
  parts.norm = transform.norm.ptr();
  return parts;
}

HeadParts sentence_parts(const Pooler& pooler, const Linear& projection, double dropout) {
  return {.tokens = HeadParts::Tokens::kFirst,
          .labels = HeadParts::Labels::kNextSentence,
          .dense = pooler->dense.ptr(),
          .weight = projection->adapted_weight(),
          .bias = projection->bias,
          .dropout = dropout};
}

}  // namespace

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

HeadParts MaskedLm::head_parts() const {
  return {.labels = HeadParts::Labels::kTokens,
          .dense = transform_.dense.ptr(),
          .activation = transform_.activation,
          .norm = transform_.norm.ptr(),
          .weight = decoder ? decoder->adapted_weight() : embeddings->token->weight,
          .bias = decoder && decoder->bias.defined() ? decoder->bias : prediction_bias};
}

SequenceClassifier::SequenceClassifier(const TransformerConfig& config, const Style& style)
    : EncoderModel(config, style.sentence_vector == SentenceVector::kPooler && !style.transforms_all),
      sentence_vector_(style.sentence_vector),
      transform_(transform_of_classifier(*this, config, style)) {
  if (!pooler && !transform_.dense)
    sentence_dense = register_module("sentence_dense", Linear(config.hidden_size, config.hidden_size));
  sentence_classifier = register_module("sentence_classifier", Linear(config.hidden_size, config.num_labels));
}

HeadParts SequenceClassifier::head_parts() const {
  HeadParts parts = token_parts(transform_, sentence_classifier, config_.classifier_dropout);
  const bool first = config_.sentence_pooling == SentencePooling::kFirst;
  parts.tokens = first ? HeadParts::Tokens::kFirst : HeadParts::Tokens::kMean;
  if (transform_.dense) return parts;
  parts.dense = pooler ? pooler->dense.ptr() : sentence_dense.ptr();
  parts.activation = activation_of(sentence_vector_);
  if (sentence_vector_ == SentenceVector::kTanh || sentence_vector_ == SentenceVector::kGelu)
    parts.dense_dropout = config_.classifier_dropout;
  return parts;
}

NextSentence::NextSentence(const TransformerConfig& config) : EncoderModel(config, /*with_pooler=*/true) {
  next_sentence = register_module("next_sentence", Linear(config.hidden_size, 2));
}

HeadParts NextSentence::head_parts() const {
  return sentence_parts(pooler, next_sentence, /*dropout=*/0.0);
}

Pretraining::Pretraining(const TransformerConfig& config, const Style& style)
    : MaskedLm(config, style, /*with_pooler=*/true),
      sentence_dropout_(style.drops_sentence_order ? config.classifier_dropout : 0.0) {
  next_sentence = register_module("next_sentence", Linear(config.hidden_size, 2));
}

HeadParts Pretraining::sentence_head_parts() const {
  return sentence_parts(pooler, next_sentence, sentence_dropout_);
}

ReplacedTokens::ReplacedTokens(const TransformerConfig& config)
    : EncoderModel(config, /*with_pooler=*/false) {
  discriminator_dense =
      register_module("discriminator_dense", Linear(config.hidden_size, config.hidden_size));
  discriminator = register_module("discriminator", Linear(config.hidden_size, 1));
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

HeadParts TokenClassifier::head_parts() const {
  return token_parts(transform_, token_classifier, config_.token_dropout);
}

QuestionAnswering::QuestionAnswering(const TransformerConfig& config, const Style& style)
    : EncoderModel(config, /*with_pooler=*/false), transform_(transform_of_classifier(*this, config, style)) {
  TORCH_CHECK(config.num_labels == 2, "question answering has 2 labels, start and end, got ",
              config.num_labels);
  span = register_module("span", Linear(config.hidden_size, 2));
}

HeadParts QuestionAnswering::head_parts() const {
  HeadParts parts = token_parts(transform_, span, config_.answer_dropout);
  parts.is_span = true;
  return parts;
}

}  // namespace zoo::encoder
