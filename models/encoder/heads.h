#pragma once

#include "models/encoder/encoder.h"

namespace zoo::encoder {

/// norm(f(W x)), the layer before a vocabulary's projection (Devlin et al., 2019, code): [*, C] to [*, E].
struct Transform {
  Linear dense{nullptr};
  Norm norm{nullptr};
  Activation activation = Activation::kGelu;
};

/// Masked language modelling (Devlin et al., 2019, section 3.1): logits [B, T, V] = decoder(norm(f(W x))).
/// The decoder is the word embedding with its own bias, or a projection if !config.tie_word_embeddings.
/// labels [B, T].
class MaskedLm : public EncoderModel {
 public:
  MaskedLm(const TransformerConfig& config, const Style& style, bool with_pooler = false);

  Linear decoder{nullptr};  // empty when tied
  /// [V], of the tied decoder, or of an untied one if config.tie_prediction_bias; beside another one
  /// Style::keeps_spare_bias, or empty.
  at::Tensor prediction_bias;

 protected:
  HeadParts head_parts() const override;

 private:
  Transform transform_;
};

/// Sequence classification: logits [B, num_labels] from the vector that `style` and config.sentence_pooling
/// select. labels as in sequence_loss().
class SequenceClassifier : public EncoderModel {
 public:
  SequenceClassifier(const TransformerConfig& config, const Style& style);

  Linear sentence_dense{nullptr};  // empty if the pooler or the transform replaces it
  Linear sentence_classifier{nullptr};

 protected:
  HeadParts head_parts() const override;

 private:
  SentenceVector sentence_vector_;
  Transform transform_;  // empty unless Style::transforms_all
};

/// Next sentence prediction (Devlin et al., 2019, section 3.1): logits [B, 2]; 0: the second segment follows
/// the first, 1: it does not. labels [B].
class NextSentence : public EncoderModel {
 public:
  explicit NextSentence(const TransformerConfig& config);

  Linear next_sentence{nullptr};

 protected:
  HeadParts head_parts() const override;
};

/// The heads that BERT and ALBERT are pre-trained with: masked language modelling, and sentence_logits [B, 2]
/// of next sentence prediction or of sentence order (Lan et al., 2020, section 3.1; 1: swapped). The loss is
/// the sum of the losses whose labels are given.
class Pretraining : public MaskedLm {
 public:
  Pretraining(const TransformerConfig& config, const Style& style);

  Linear next_sentence{nullptr};

 protected:
  HeadParts sentence_head_parts() const override;

 private:
  double sentence_dropout_;
};

/// Replaced token detection (Clark et al., 2020, section 2): logits [B, T], above 0 for tokens that seem
/// replaced. labels [B, T], 1 for replaced tokens, 0 for others; what the attention mask hides counts
/// nothing, and -100 is ignored.
class ReplacedTokens : public EncoderModel {
 public:
  explicit ReplacedTokens(const TransformerConfig& config);

  Linear discriminator_dense{nullptr}, discriminator{nullptr};

 protected:
  HeadParts head_parts() const override;
};

/// Token classification: logits [B, T, num_labels]. labels [B, T], -100 is ignored.
class TokenClassifier : public EncoderModel {
 public:
  TokenClassifier(const TransformerConfig& config, const Style& style);

  Linear token_classifier{nullptr};

 protected:
  HeadParts head_parts() const override;

 private:
  Transform transform_;  // empty unless Style::transforms_all
};

/// Question answering: start_logits and end_logits [B, T] of an answer. labels [B, 2], as in span_loss().
class QuestionAnswering : public EncoderModel {
 public:
  /// Throws c10::Error unless config.num_labels is 2.
  QuestionAnswering(const TransformerConfig& config, const Style& style);

  Linear span{nullptr};

 protected:
  HeadParts head_parts() const override;

 private:
  Transform transform_;  // empty unless Style::transforms_all
};

}  // namespace zoo::encoder
