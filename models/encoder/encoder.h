#pragma once

#include "models/encoder/style.h"
#include "models/family.h"
#include "models/layers/embeddings.h"
#include "models/layers/stack.h"

namespace zoo::encoder {

/// tanh(W x[0] + b): one vector per sequence, from the encoder's output at its first token (Devlin et al.,
/// 2019, section 3.1). [B, T, C] to [B, C].
class PoolerImpl : public torch::nn::Module {
 public:
  explicit PoolerImpl(std::int64_t hidden_size);

  at::Tensor forward(const at::Tensor& hidden);

  Linear dense{nullptr};
};
TORCH_MODULE(Pooler);

/// Encoder with embeddings, as in BERT, RoBERTa, DistilBERT and ALBERT. A bare model gives last_hidden_state
/// and, with a pooler, pooler_output; heads derive from it.
class EncoderModel : public Model {
 public:
  /// Throws c10::Error if the configuration is invalid or not an encoder's.
  EncoderModel(const TransformerConfig& config, bool with_pooler);

  ModelOutput forward(const ModelInputs& inputs) final;

  ModelParts parts() const final;

  void remove_pooler() final;

  Embeddings embeddings{nullptr};
  TransformerStack stack{nullptr};
  Pooler pooler{nullptr};  // empty without one

 protected:
  virtual HeadParts head_parts() const { return {}; }
  /// A second head, on the labels inputs.sentence_labels; the loss is the sum of both.
  virtual HeadParts sentence_head_parts() const { return {}; }

 private:
  StackOutput encode(const ModelInputs& inputs);
};

/// Builds the encoder with the head. Throws c10::Error for a head that no encoder has.
std::shared_ptr<Model> build(const TransformerConfig& config, Head head, const Style& style);

}  // namespace zoo::encoder
