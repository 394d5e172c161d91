#pragma once

#include "models/family.h"
#include "models/layers/encoder_decoder_stack.h"
#include "models/layers/linear.h"
#include "models/model.h"

namespace zoo::t5 {

/// T5 (Raffel et al., 2020): an encoder and a decoder that share their token embedding, RMSNorm before the
/// sublayers, relative positions as a bias of the scores, no biases elsewhere, attention without scaling.
///   base         the hidden states alone
///   seq2seq-lm   logits = (hidden * config.logits_scale) W^T, where W is the embedding itself when
///                config.tie_word_embeddings
/// The decoder's ids are given, or are the labels shifted right.
class T5 : public Model {
 public:
  /// Throws c10::Error if the configuration is not valid or not an encoder-decoder's, and for another head.
  T5(const TransformerConfig& config, Head head);

  ModelOutput forward(const ModelInputs& inputs) override;

  /// T5's rule, with config.initializer_range as its factor: normal(0, factor) for the embeddings, for a
  /// projection factor / sqrt(its input's width), for queries factor / sqrt(C D), norms one.
  void initialize(at::Generator generator) override;

  std::vector<std::pair<std::string, std::int64_t>> components() const override;

  Head head() const { return head_; }

  Embedding token_embedding{nullptr};
  EncoderDecoderStack stack{nullptr};
  Linear lm_head{nullptr};  // empty when tied, and of a bare model

 private:
  at::Tensor embed(const char* name, const at::Tensor& ids) const;
  at::Tensor decoder_ids(const ModelInputs& inputs) const;
  /// Logits and loss, from the last hidden state.
  void add_logits(const ModelInputs& inputs, ModelOutput& output) const;

  Head head_;
};

/// The encoder of a T5 alone: hidden states of input_ids.
class T5Encoder : public Model {
 public:
  /// Throws c10::Error if the configuration is not valid or not an encoder's.
  explicit T5Encoder(const TransformerConfig& config);

  ModelOutput forward(const ModelInputs& inputs) override;
  void initialize(at::Generator generator) override;
  std::vector<std::pair<std::string, std::int64_t>> components() const override;

  Embedding token_embedding{nullptr};
  TransformerStack encoder{nullptr};
};

}  // namespace zoo::t5
