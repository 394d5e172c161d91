#pragma once

#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "models/heads/losses.h"
#include "models/layers/key_value_cache.h"
#include "models/layers/transformer_config.h"

namespace zoo {

/// What a model may be given; a family says which it needs. Ids are int64 in [0, vocab_size).
struct ModelInputs {
  at::Tensor input_ids;          // [B, T]
  at::Tensor attention_mask;     // [B, S], 1 keeps, 0 hides; with a cache S counts the cached positions too
  at::Tensor position_ids;       // [T] or [B, T]; undefined: 0, 1, … behind the cached ones
  at::Tensor token_type_ids;     // [B, T], BERT's segments; undefined: all 0
  at::Tensor decoder_input_ids;  // [B, T] of an encoder-decoder; undefined: labels shifted right
  at::Tensor decoder_attention_mask;  // [B, S], as attention_mask, of the decoder's own positions
  at::Tensor memory;   // [B, S, C], what the encoder gave for input_ids before; undefined: it is computed
  at::Tensor labels;   // as the head says; beside input_ids a causal model shifts them, and -100 is ignored
  at::Tensor targets;  // [B, T]: what each position shall predict, already shifted; -100 is ignored
  /// [N], which of the B T labels are not ignored, in ascending order: a masked-lm head then makes logits
  /// [N, V] of these alone, and a loss that is the same. Undefined: of all.
  at::Tensor label_positions;
  LossOptions loss;
  KeyValueCache* cache = nullptr;
  bool last_logits_only = false;  // logits [B, 1, V] of the last position: all that decoding needs
  bool loss_only = false;         // a language model with labels may leave out its logits, which are large
  bool output_hidden_states = false;
  bool output_attentions = false;
};

/// What a model gives; fields that do not apply are undefined or empty.
struct ModelOutput {
  at::Tensor logits;                      // [B, T, V]; [B, labels] of a head that classifies sequences;
                                          // [N, V] where label_positions were given
  at::Tensor start_logits, end_logits;    // [B, T], of question answering
  at::Tensor pooler_output;               // [B, C], of a bare encoder that has a pooler
  at::Tensor loss;                        // [], mean over the labels that are not ignored, in nats, float32
  at::Tensor last_hidden_state;           // [B, T, C]
  std::vector<at::Tensor> hidden_states;  // num_layers + 1 of [B, T, C], the last after the final norm
  std::vector<at::Tensor> attentions;     // num_layers of [B, H, T, S]
  // Of an encoder-decoder, whose decoder fills the fields above.
  at::Tensor encoder_last_hidden_state;  // [B, S, C]
  std::vector<at::Tensor> encoder_hidden_states;
  std::vector<at::Tensor> encoder_attentions;
  std::vector<at::Tensor> cross_attentions;  // num_decoder_layers of [B, H, T, S]
};

/// A transformer of any family, as programs hold it.
class Model : public torch::nn::Module {
 public:
  explicit Model(const TransformerConfig& config) : config_(config) {}

  /// Throws c10::Error naming what does not fit: an id outside the vocabulary, a sequence that is too long.
  virtual ModelOutput forward(const ModelInputs& inputs) = 0;

  /// Fresh weights, drawn by the family's own rule.
  virtual void initialize(at::Generator generator) = 0;

  const TransformerConfig& config() const { return config_; }

  /// The parts that a table of parameter counts shows: name and number of parameters, tied weights once.
  virtual std::vector<std::pair<std::string, std::int64_t>> components() const = 0;

  /// The number of parameters, tied weights once.
  std::int64_t parameter_count() const;

 protected:
  TransformerConfig config_;
};

}  // namespace zoo
