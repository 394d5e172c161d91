#pragma once

/// @file
/// Use:
///
///     const zoo::LoadedModel loaded = zoo::load_model("runs/kjv/final");  // models/checkpoint/checkpoint.h
///     const at::Tensor ids = at::arange(8).unsqueeze(0);                  // [B, T]
///     const zoo::ModelOutput output = loaded.model->forward({.input_ids = ids, .output_attentions = true});
///     const at::Tensor next = output.logits.select(1, -1).argmax(-1);  // [B], of logits [B, T, V]
///     const at::Tensor first_layer = output.attentions.front();        // [B, H, T, S]

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Generator.h>
#include <torch/nn/module.h>

#include "models/heads/head_parts.h"
#include "models/layers/transformer_config.h"
#include "models/model_io.h"

namespace zoo {

class EmbeddingsImpl;
class TransformerStackImpl;
struct StackOutput;

/// Parts of a model, for engines that run its weights in their own way (packed inference, TorchScript).
/// Without embeddings, no engine supports the model.
struct ModelParts {
  std::shared_ptr<EmbeddingsImpl> embeddings;
  /// Embeddings of an encoder-decoder's decoder: the encoder's, or others with the same token table.
  std::shared_ptr<EmbeddingsImpl> decoder_embeddings;
  std::shared_ptr<TransformerStackImpl> encoder, decoder;
  HeadParts head;
  HeadParts sentence_head;  // beside it, of a pretraining head

  bool generates() const { return decoder && head.has_vocabulary(); }
};

/// A transformer of any family, as programs hold it.
class Model : public torch::nn::Module {
 public:
  explicit Model(const TransformerConfig& config) : config_(config) {}

  /// Throws c10::Error naming the bad input: an id outside the vocabulary, a sequence that is too long.
  virtual ModelOutput forward(const ModelInputs& inputs) = 0;

  /// Initialises new weights as config().initial_weights says, in module order.
  virtual void initialize(at::Generator generator);

  virtual ModelParts parts() const { return {}; }

  /// Leaves out the pooler of a bare encoder, for checkpoints of models without one.
  virtual void remove_pooler() {}

  const TransformerConfig& config() const { return config_; }

  /// Rows of a table of parameter counts: name and number of parameters, tied weights once.
  std::vector<std::pair<std::string, std::int64_t>> components() const;

  /// Number of parameters, tied weights once.
  std::int64_t parameter_count() const;

 protected:
  /// Fills the head's logits, and its loss if there are labels, from output.last_hidden_state. Without
  /// head.weight it only refuses labels. Throws c10::Error for labels of another shape.
  void run(const HeadParts& head, const ModelInputs& inputs, ModelOutput& output) const;

  TransformerConfig config_;

 private:
  void predict_tokens(const HeadParts& head, const ModelInputs& inputs, ModelOutput& output) const;
};

/// Keeps a model in evaluation mode while it lives, and then restores its mode.
class EvaluationMode {
 public:
  explicit EvaluationMode(Model& model) : model_(model), was_training_(model.is_training()) { model.eval(); }
  ~EvaluationMode() { model_.train(was_training_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  Model& model_;
  bool was_training_;
};

/// What the stack whose states a head reads gives a model's output.
ModelOutput model_output_of(StackOutput stack);

}  // namespace zoo
