#pragma once

/// @file
/// What a model reads and returns: tensors alone. A program that only holds a Model, and lets others run it,
/// needs no more; one that calls it includes models/model.h, which takes five times as long to compile.

#include <exception>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/heads/losses.h"
#include "models/layers/interventions.h"

namespace zoo {

class KeyValueCache;
class Model;

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
  std::vector<std::int64_t> document_lengths() const {
    if (!documents.empty()) return documents;
    return std::vector<std::int64_t>(static_cast<std::size_t>(input_ids.size(0)), input_ids.size(1));
  }
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

/// The message of any exception here. what() of LibTorch's c10::Error, which models throw, ends in a stack
/// trace that this leaves out.
std::string plain_message(const std::exception& error);

}  // namespace zoo
