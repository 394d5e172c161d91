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

  ModelParts parts() const override;

  Embeddings embeddings{nullptr};
  TransformerStack stack{nullptr};

 protected:
  /// Fills logits and loss from output.last_hidden_state. A bare model refuses labels.
  virtual void apply_head(const ModelInputs& inputs, ModelOutput& output);

  /// True if the head's loss has the share of config.router_loss.
  virtual bool balances_experts() const { return false; }
};

/// Language model: logits = (last_hidden_state * config.output_scale()) W^T, where W is the token embedding
/// if config.tie_word_embeddings. labels [B, T] are shifted here, targets [B, T] are not.
class DecoderForCausalLm : public DecoderModel {
 public:
  explicit DecoderForCausalLm(const TransformerConfig& config);

  ModelParts parts() const override;

  Linear lm_head{nullptr};  // empty when tied

 protected:
  void apply_head(const ModelInputs& inputs, ModelOutput& output) override;
  bool balances_experts() const override { return true; }

 private:
  at::Tensor output_weight() const;
  at::Tensor output_bias() const;
};

/// Sequence classification: logits [B, num_labels] from the hidden state of the last token that is not
/// pad_token_id. labels as in sequence_loss().
class DecoderForSequenceClassification : public DecoderModel {
 public:
  explicit DecoderForSequenceClassification(const TransformerConfig& config);

  ModelParts parts() const override;

  Linear score{nullptr};

 protected:
  /// Throws c10::Error for several sequences if the configuration has no pad_token_id.
  void apply_head(const ModelInputs& inputs, ModelOutput& output) override;
};

/// Builds the decoder with `head`. Throws c10::Error for a head that decoders lack.
std::shared_ptr<Model> build_decoder(const TransformerConfig& config, Head head);

}  // namespace zoo
