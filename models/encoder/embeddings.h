#pragma once

#include "models/layers/linear.h"
#include "models/layers/norm.h"
#include "models/model.h"

namespace zoo::encoder {

/// What goes into a BERT-like encoder (Devlin et al., 2019, section 3): norm(word[id] + position[p] +
/// token_type[segment]), [B, T, E]; with a factorised embedding (Lan et al., 2020, section 3.1) projected
/// from E to C. Positions are 0 … T - 1, or what config.position_count says.
class EmbeddingsImpl : public torch::nn::Module {
 public:
  explicit EmbeddingsImpl(const TransformerConfig& config);

  /// [B, T, C]. Throws c10::Error naming what does not fit: shapes, an id outside its table, a sequence that
  /// is too long.
  at::Tensor forward(const ModelInputs& inputs);

  Embedding word{nullptr}, position{nullptr};
  Embedding token_type{nullptr};  // empty without segments
  Norm norm{nullptr};
  Linear projection{nullptr};  // empty unless factorised

 private:
  void check(const ModelInputs& inputs) const;
  at::Tensor positions(const ModelInputs& inputs) const;

  TransformerConfig config_;
};
TORCH_MODULE(Embeddings);

}  // namespace zoo::encoder
