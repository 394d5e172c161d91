#pragma once

#include "models/layers/linear.h"
#include "models/layers/stack.h"
#include "models/model.h"

namespace zoo::gpt {

/// GPT-2 (Radford et al., 2019), bare: last_hidden_state = norm(stack(wte[ids] + wpe[positions])). A head
/// derives from it.
class GptModel : public Model {
 public:
  /// Throws c10::Error if the configuration is not valid or not a decoder's.
  explicit GptModel(const TransformerConfig& config);

  ModelOutput forward(const ModelInputs& inputs) final;

  /// normal(0, initializer_range) for all weights, zero biases; the projections that end a residual branch
  /// divided by sqrt(2 * num_layers) (Radford et al., 2019, section 2.3).
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
class GptForCausalLm : public GptModel {
 public:
  explicit GptForCausalLm(const TransformerConfig& config);

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
class GptForSequenceClassification : public GptModel {
 public:
  explicit GptForSequenceClassification(const TransformerConfig& config);

  void initialize(at::Generator generator) override;
  std::vector<std::pair<std::string, std::int64_t>> components() const override;

  Linear score{nullptr};

 protected:
  /// Throws c10::Error for several sequences if the configuration names no pad_token_id.
  void apply_head(const ModelInputs& inputs, ModelOutput& output) override;
};

}  // namespace zoo::gpt
