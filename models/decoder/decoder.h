#pragma once

#include "models/family.h"
#include "models/layers/embeddings.h"
#include "models/layers/stack.h"
#include "models/model.h"

namespace zoo {

/// Causal decoder as in GPT-2 (Radford et al., 2019) and Llama (Touvron et al., 2023): last_hidden_state =
/// norm(stack(embeddings(ids))). Its heads:
///   base                     hidden states only
///   causal-lm                logits = (last_hidden_state * config.output_scale()) W^T, where W is the token
///                            embedding if config.tie_word_embeddings. labels [B, T] are shifted here,
///                            targets [B, T] are not. The loss has the share of config.router_loss
///   sequence-classification  logits [B, num_labels] from the state of the last token that is not
///                            pad_token_id; without one, of one sequence. labels as in sequence_loss()
class DecoderModel : public Model {
 public:
  /// Throws c10::Error if the configuration is invalid or not a decoder's, and for another head.
  DecoderModel(const TransformerConfig& config, Head head);

  ModelOutput forward(const ModelInputs& inputs) override;

  ModelParts parts() const override;

  Embeddings embeddings{nullptr};
  TransformerStack stack{nullptr};
  Linear lm_head{nullptr};  // empty for tied models and other heads
  Linear score{nullptr};    // of sequence classification

 private:
  HeadParts head_parts() const;

  Head head_;
};

}  // namespace zoo
