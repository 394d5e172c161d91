#pragma once

/// @file
/// Use:
///
///     const zoo::LoadedModel loaded = zoo::load_model("runs/kjv/final");  // models/checkpoint/checkpoint.h
///     const at::Tensor ids = at::arange(8).unsqueeze(0);                  // [B, T]
///     const zoo::ModelOutput output = loaded.model->forward({.input_ids = ids, .output_attentions = true});
///     const at::Tensor next = output.logits.select(1, -1).argmax(-1);  // [B], of logits [B, T, V]
///     const at::Tensor first_layer = output.attentions.front();        // [B, H, T, S]

#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "models/heads/head_parts.h"
#include "models/layers/attention/attention.h"
#include "models/layers/interventions.h"
#include "models/layers/transformer_config.h"

namespace zoo {

/// Inputs of a model; a family says which it needs. Ids are int64 in [0, vocab_size).
struct ModelInputs {
  at::Tensor input_ids;          // [B, T]
  at::Tensor attention_mask;     // [B, S], 1 keeps, 0 hides; with a cache S counts the cached positions too
  at::Tensor position_ids;       // [T] or [B, T], if config.takes_positions(); undefined: 0, 1, … after the
                                 // cached ones. Of an encoder-decoder those of the decoder's ids
  at::Tensor token_type_ids;     // [B, T], BERT's segments; undefined: all 0
  at::Tensor decoder_input_ids;  // [B, T] of an encoder-decoder; undefined: labels shifted right
  at::Tensor decoder_attention_mask;  // [B, S], as attention_mask, of the decoder's own positions
  at::Tensor memory;   // [B, S, C], the encoder's output of an encoder-decoder; undefined: it is computed
  at::Tensor labels;   // as the head says; beside input_ids a causal model shifts them, and -100 is ignored
  at::Tensor targets;  // [B, T]: target of each position, already shifted; -100 is ignored
  at::Tensor sentence_labels;  // [B] of a pretraining head, whose loss is the sum of both; -100 is ignored
  /// [N], which of the B T labels are not ignored, in ascending order: a masked-lm head then makes logits
  /// [N, V] of these alone, and a loss that is the same. Undefined: of all.
  at::Tensor label_positions;
  /// Of a causal model with targets: lengths of the documents that each row packs one after another, B T in
  /// all, none of which goes on in the next row. Positions count from a document's start and see nothing
  /// before it. Empty: a row is one document.
  std::vector<std::int64_t> documents;
  LossOptions loss;
  KeyValueCache* cache = nullptr;
  bool last_logits_only = false;  // logits [B, 1, V] of the last position: all that decoding needs
  bool loss_only = false;         // a language model with labels may leave out its logits, which are large
  bool output_hidden_states = false;
  bool output_attentions = false;
  bool output_heads = false;
  bool output_activations = false;
  std::vector<Intervention> interventions;  // in evaluation mode alone
};

/// Outputs of a model; fields that do not apply are undefined or empty.
struct ModelOutput {
  at::Tensor logits;                      // [B, T, V]; [B, labels] of a head that classifies sequences;
                                          // [N, V] where label_positions were given
  at::Tensor start_logits, end_logits;    // [B, T], of question answering
  at::Tensor sentence_logits;             // [B, 2], of a pretraining head
  at::Tensor pooler_output;               // [B, C], of a bare encoder that has a pooler
  at::Tensor loss;                        // [], mean over the labels that are not ignored, in nats, float32
  at::Tensor last_hidden_state;           // [B, T, C]
  std::vector<at::Tensor> hidden_states;  // num_layers + 1 of [B, T, C], the last after the final norm
  std::vector<at::Tensor> attentions;     // num_layers of [B, H, T, S]
  // For an encoder-decoder, whose decoder fills the fields above.
  at::Tensor encoder_last_hidden_state;  // [B, S, C]
  std::vector<at::Tensor> encoder_hidden_states;
  std::vector<at::Tensor> encoder_attentions;
  std::vector<LayerActivations> encoder_activations;
  std::vector<at::Tensor> cross_attentions;   // num_decoder_layers of [B, H, T, S]
  std::vector<HeadRecord> heads;              // of each self-attention, an encoder's before its decoder's
  std::vector<LayerActivations> activations;  // num_layers
  std::vector<at::Tensor> router_logits;      // [B T, E] of each layer with experts, if the loss has them
};

class EmbeddingsImpl;
class TransformerStackImpl;

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

/// The message of any exception here. what() of LibTorch's c10::Error, which models throw, ends in a stack
/// trace that this leaves out.
std::string plain_message(const std::exception& error);

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

}  // namespace zoo
