#pragma once

#include "models/layers/linear.h"
#include "models/layers/stack.h"
#include "models/model.h"

namespace zoo::gpt {

/// GPT-2 (Radford et al., 2019) with a language-modelling head: logits = norm(stack(wte[ids] +
/// wpe[positions])) W^T, where W is wte itself when config.tie_word_embeddings.
class GptForCausalLm : public Model {
 public:
  /// Throws c10::Error if the configuration is not valid or not a decoder's.
  explicit GptForCausalLm(const TransformerConfig& config);

  ModelOutput forward(const ModelInputs& inputs) override;

  /// normal(0, initializer_range) for all weights, zero biases; the projections that end a residual branch
  /// divided by sqrt(2 * num_layers) (Radford et al., 2019, section 2.3).
  void initialize(at::Generator generator) override;

  std::vector<std::pair<std::string, std::int64_t>> components() const override;

  Embedding token_embedding{nullptr};
  Embedding position_embedding{nullptr};  // empty unless positions are learned
  TransformerStack stack{nullptr};
  Linear lm_head{nullptr};  // empty when tied

 private:
  at::Tensor embed(const ModelInputs& inputs, std::int64_t past) const;
  void check_inputs(const ModelInputs& inputs, std::int64_t past) const;
  const at::Tensor& output_weight() const;

  at::Tensor sinusoids_;  // [max_positions, C] when positions are sinusoidal
};

}  // namespace zoo::gpt
