#pragma once

#include "models/family.h"
#include "models/layers/embeddings.h"
#include "models/layers/stack.h"

namespace zoo {

/// Bare causal decoder as in GPT-2 (Radford et al., 2019) and Llama (Touvron et al., 2023): last_hidden_state
/// = norm(stack(embeddings(ids))). Heads derive from it.
class DecoderModel : public Model {
 public:
  /// Throws c10::Error if the configuration is invalid or not a decoder's.
  explicit DecoderModel(const TransformerConfig& config);

  ModelOutput forward(const ModelInputs& inputs) final;

  ModelParts parts() const final;

  Embeddings embeddings{nullptr};
  TransformerStack stack{nullptr};

 protected:
  virtual HeadParts head_parts() const { return {}; }
};

/// Language model: logits = (last_hidden_state * config.output_scale()) W^T, where W is the token embedding
/// if config.tie_word_embeddings. labels [B, T] are shifted here, targets [B, T] are not. The loss has the
/// share of config.router_loss.
class DecoderForCausalLm : public DecoderModel {
 public:
  explicit DecoderForCausalLm(const TransformerConfig& config);

  Linear lm_head{nullptr};  // empty when tied

 protected:
  HeadParts head_parts() const override;
};

/// Sequence classification: logits [B, num_labels] from the hidden state of the last token that is not
/// pad_token_id; without one, of one sequence. labels as in sequence_loss().
class DecoderForSequenceClassification : public DecoderModel {
 public:
  explicit DecoderForSequenceClassification(const TransformerConfig& config);

  Linear score{nullptr};

 protected:
  HeadParts head_parts() const override;
};

/// Builds the decoder with `head`. Throws c10::Error for a head that decoders lack.
std::shared_ptr<Model> build_decoder(const TransformerConfig& config, Head head);

}  // namespace zoo
