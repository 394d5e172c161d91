#pragma once

#include "models/layers/attention.h"
#include "models/model.h"

namespace zoo::tutorial {

/// The tutorials' three models, as small as they can be to show one idea each. Their fresh weights are what
/// torch::nn draws from the same seed, in the tutorials' order: their printed figures come out again.

/// Embeddings that learn by prediction: logits = W e[id] + b, a position sees itself alone.
/// input_ids [B, T], targets or labels [B, T]; logits [B, T, V].
class WordPrediction : public Model {
 public:
  explicit WordPrediction(const TransformerConfig& config);

  ModelOutput forward(const ModelInputs& inputs) override;
  void initialize(at::Generator generator) override;
  std::vector<std::pair<std::string, std::int64_t>> components() const override;

  Embedding embed{nullptr};  // [V, C]
  Linear linear{nullptr};    // [V, C], with bias
};

/// One head of attention without positions, and a class from the FIRST word: what tells the phrases apart
/// must come to it through the attention. input_ids [B, T], labels [B]; logits [B, num_labels].
class FirstWordClassifier : public Model {
 public:
  explicit FirstWordClassifier(const TransformerConfig& config);

  ModelOutput forward(const ModelInputs& inputs) override;
  void initialize(at::Generator generator) override;
  std::vector<std::pair<std::string, std::int64_t>> components() const override;

  Embedding embed{nullptr};
  Linear qkv{nullptr};  // [3C, C]: query, key, value
  Linear fc{nullptr};   // with bias
};

/// Attention of num_heads heads without positions, and a class from the LAST word.
/// input_ids [B, T], labels [B]; logits [B, num_labels], attentions one of [B, H, T, T].
class LastWordClassifier : public Model {
 public:
  explicit LastWordClassifier(const TransformerConfig& config);

  ModelOutput forward(const ModelInputs& inputs) override;
  void initialize(at::Generator generator) override;
  std::vector<std::pair<std::string, std::int64_t>> components() const override;

  Embedding embed{nullptr};
  SelfAttention attention{nullptr};
  Linear fc{nullptr};  // with bias
};

}  // namespace zoo::tutorial
