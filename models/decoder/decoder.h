#pragma once

#include "models/family.h"
#include "models/layers/linear.h"
#include "models/layers/stack.h"

namespace zoo {

/// A causal decoder as GPT-2 (Radford et al., 2019) and Llama (Touvron et al., 2023) have it, bare:
/// last_hidden_state = norm(stack(wte[ids] + wpe[positions])), without wpe where positions are not a table.
/// A head derives from it.
class DecoderModel : public Model {
 public:
  /// Throws c10::Error if the configuration is not valid or not a decoder's.
  explicit DecoderModel(const TransformerConfig& config);

  ModelOutput forward(const ModelInputs& inputs) final;

  /// normal(0, initializer_range) for all weights, or as config.initial_weights says; zero biases.
  void initialize(at::Generator generator) override;

  std::vector<std::pair<std::string, std::int64_t>> components() const override;

  Embedding token_embedding{nullptr};
  Embedding position_embedding{nullptr};  // empty unless positions are learned
  TransformerStack stack{nullptr};

 protected:
  /// Fills what the head makes of output.last_hidden_state. A bare model has no labels to learn from.
  virtual void apply_head(const ModelInputs& inputs, ModelOutput& output);

 private:
  at::Tensor embed(const ModelInputs& inputs, std::int64_t past) const;
  void check_inputs(const ModelInputs& inputs, std::int64_t past) const;

  at::Tensor sinusoids_;  // [max_positions, C] when positions are sinusoidal
};

/// The language model: logits = last_hidden_state W^T, where W is wte itself when config.tie_word_embeddings.
/// labels [B, T] are shifted here, targets [B, T] are not.
class DecoderForCausalLm : public DecoderModel {
 public:
  explicit DecoderForCausalLm(const TransformerConfig& config);

  void initialize(at::Generator generator) override;
  std::vector<std::pair<std::string, std::int64_t>> components() const override;

  Linear lm_head{nullptr};  // empty when tied

 protected:
  void apply_head(const ModelInputs& inputs, ModelOutput& output) override;

 private:
  const at::Tensor& output_weight() const;
};

/// A class for a sequence: logits [B, num_labels] from the hidden state of its last token that is not
/// pad_token_id. labels as sequence_loss() takes them.
class DecoderForSequenceClassification : public DecoderModel {
 public:
  explicit DecoderForSequenceClassification(const TransformerConfig& config);

  void initialize(at::Generator generator) override;
  std::vector<std::pair<std::string, std::int64_t>> components() const override;

  Linear score{nullptr};

 protected:
  /// Throws c10::Error for several sequences if the configuration names no pad_token_id.
  void apply_head(const ModelInputs& inputs, ModelOutput& output) override;
};

/// The decoder with this head. Throws c10::Error for a head that decoders do not have.
std::shared_ptr<Model> build_decoder(const TransformerConfig& config, Head head);

}  // namespace zoo
