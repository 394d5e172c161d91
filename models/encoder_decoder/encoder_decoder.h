#pragma once

#include "models/family.h"
#include "models/layers/embeddings.h"
#include "models/layers/encoder_decoder_stack.h"
#include "models/model.h"

namespace zoo {

/// An encoder-decoder (Vaswani et al., 2017) whose two stacks share their embeddings, as T5 (Raffel et al.,
/// 2020):
///   base         hidden states alone
///   seq2seq-lm   logits = (hidden * config.output_scale()) W^T, where W is the token embedding when
///                config.tie_word_embeddings
/// The decoder's ids are given, or are the labels shifted right.
class EncoderDecoderModel : public Model {
 public:
  /// Throws c10::Error if the configuration is invalid or not an encoder-decoder's, for a position table
  /// (each stack would need one), and for another head.
  EncoderDecoderModel(const TransformerConfig& config, Head head);

  ModelOutput forward(const ModelInputs& inputs) override;

  ModelParts parts() const override;

  Embeddings embeddings{nullptr};
  EncoderDecoderStack stack{nullptr};
  Linear lm_head{nullptr};  // empty for tied and bare models

 private:
  at::Tensor decoder_ids(const ModelInputs& inputs) const;
  /// Fills logits and loss from output.last_hidden_state.
  void apply_head(const ModelInputs& inputs, ModelOutput& output) const;
  const at::Tensor& output_weight() const;

  Head head_;
};

}  // namespace zoo
