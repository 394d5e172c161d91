#pragma once

#include "models/encoder/embeddings.h"
#include "models/encoder/style.h"
#include "models/family.h"
#include "models/layers/stack.h"

namespace zoo::encoder {

/// tanh(W x[0] + b): one vector for a sequence, from the encoder's output at its first token (Devlin et al.,
/// 2019, section 3.1). [B, T, C] to [B, C].
class PoolerImpl : public torch::nn::Module {
 public:
  explicit PoolerImpl(std::int64_t hidden_size);

  at::Tensor forward(const at::Tensor& hidden);

  Linear dense{nullptr};
};
TORCH_MODULE(Pooler);

/// An encoder with embeddings: what BERT, RoBERTa, DistilBERT and ALBERT have in common. Bare, it gives
/// last_hidden_state and, with a pooler, pooler_output; a head derives from it.
class EncoderModel : public Model {
 public:
  /// Throws c10::Error if the configuration is not valid or not an encoder's.
  EncoderModel(const TransformerConfig& config, bool with_pooler);

  ModelOutput forward(const ModelInputs& inputs) final;

  /// normal(0, initializer_range) for all weights but the norms', zero biases (Devlin et al., 2019).
  void initialize(at::Generator generator) override;

  std::vector<std::pair<std::string, std::int64_t>> components() const override;

  Embeddings embeddings{nullptr};
  TransformerStack stack{nullptr};
  Pooler pooler{nullptr};  // empty without one

 protected:
  /// Fills what the head makes of output.last_hidden_state. A bare model has no labels to learn from.
  virtual void apply_head(const ModelInputs& inputs, ModelOutput& output);

  /// What the head is called in components(), "" of a bare model.
  virtual std::string head_name() const { return ""; }

  at::Tensor drop(const at::Tensor& x, double rate) const;
};

/// The encoder with the head. Throws c10::Error for a head that no encoder has.
std::shared_ptr<Model> build(const TransformerConfig& config, Head head, const Style& style);

}  // namespace zoo::encoder
