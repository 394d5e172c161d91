#pragma once

#include "models/family.h"
#include "models/layers/linear.h"
#include "models/layers/stack.h"
#include "models/model.h"

namespace zoo {

/// A decoder as GPT-2 (Radford et al., 2019), Llama (Touvron et al., 2023) and their like have it: token
/// embedding, positions where the configuration has a table of them, the stack, and a head.
///   base         the hidden states alone
///   causal-lm    logits = stack(wte[ids] + positions) W^T, where W is wte itself when
///                config.tie_word_embeddings
class CausalDecoder : public Model {
 public:
  /// Throws c10::Error if the configuration is not valid or not a decoder's, and for another head.
  CausalDecoder(const TransformerConfig& config, Head head);

  ModelOutput forward(const ModelInputs& inputs) override;

  /// As config.initial_weights says; biases zero, norms one.
  void initialize(at::Generator generator) override;

  std::vector<std::pair<std::string, std::int64_t>> components() const override;

  Embedding token_embedding{nullptr};
  Embedding position_embedding{nullptr};  // empty unless positions are learned
  TransformerStack stack{nullptr};
  Linear lm_head{nullptr};  // empty when tied, and of a bare model

 private:
  at::Tensor embed(const ModelInputs& inputs, std::int64_t past) const;
  void check_inputs(const ModelInputs& inputs, std::int64_t past) const;
  /// Logits and loss, from the last hidden state.
  void add_logits(const ModelInputs& inputs, ModelOutput& output) const;

  Head head_;
  at::Tensor sinusoids_;  // [max_positions, C] when positions are sinusoidal
};

}  // namespace zoo
