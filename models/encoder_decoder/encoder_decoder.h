#pragma once

#include "models/family.h"
#include "models/layers/embeddings.h"
#include "models/layers/stack.h"
#include "models/model.h"

namespace zoo {

/// Labels or an encoder's ids [B, T] as a decoder reads them, one position later; label -100 is padding.
/// Throws c10::Error if the configuration lacks decoder_start_token_id or pad_token_id.
at::Tensor shifted_right(const TransformerConfig& config, const at::Tensor& ids);

/// An encoder-decoder (Vaswani et al., 2017) whose two stacks share their token embedding; each has positions
/// and a norm of embeddings of its own, if the configuration has those:
///   base         hidden states alone
///   seq2seq-lm   logits = (hidden * config.output_scale()) W^T, where W is the token embedding when
///                config.tie_word_embeddings, plus output_bias if config.output_bias
///   sequence-classification, question-answering (Lewis et al., 2020, sections 3.1, 3.2): from the decoder's
///                states, at the last config.eos_token_id of the ids, or each
/// The decoder's ids are given, or are the labels shifted right; of the last two heads the encoder's ids.
class EncoderDecoderModel : public Model {
 public:
  /// Throws c10::Error if the configuration is invalid or not an encoder-decoder's, and for another head.
  EncoderDecoderModel(const TransformerConfig& config, Head head);

  ModelOutput forward(const ModelInputs& inputs) override;

  ModelParts parts() const override;

  Embeddings embeddings{nullptr};
  Embeddings decoder_embeddings{nullptr};  // `embeddings` itself if the stacks differ in nothing
  EncoderDecoderStack stack{nullptr};
  Linear lm_head{nullptr};                                       // empty for tied models and other heads
  Linear sentence_dense{nullptr}, sentence_classifier{nullptr};  // of sequence classification
  Linear span{nullptr};                                          // of question answering
  at::Tensor output_bias;                                        // [1, V]; undefined without one

 private:
  at::Tensor decoder_ids(const ModelInputs& inputs) const;
  HeadParts head_parts() const;

  Head head_;
};

}  // namespace zoo
