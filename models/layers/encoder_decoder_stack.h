#pragma once

/// @file
/// Use:
///
///     zoo::EncoderDecoderStack stacks(config);  // of Shape::kEncoderDecoder
///     const auto output = stacks->forward({.encoder_embeddings = source, .decoder_embeddings = x});
///     const at::Tensor hidden = output.decoder.hidden;  // [B, T, C]

#include "models/layers/stack.h"

namespace zoo {

/// Inputs of one forward pass through an encoder and a decoder.
struct EncoderDecoderInputs {
  at::Tensor encoder_embeddings;  // [B, S, C]; not needed when `memory` is given
  at::Tensor decoder_embeddings;  // [B, T, C]
  at::Tensor attention_mask;      // [B, S] of the encoder's sequence, 1 keeps. Undefined: nothing is hidden.
  at::Tensor memory;  // [B, S, C], the encoder's output if it is known. Undefined: it is computed.
  at::Tensor decoder_attention_mask;  // [B, cached length + T], of the decoder's sequence
  at::Tensor decoder_positions;       // [T] or [B, T], as StackInputs::positions
  KeyValueCache* cache = nullptr;     // the decoder's
  bool output_hidden_states = false;
  bool output_attentions = false;
  bool output_heads = false;
  bool output_activations = false;
  std::vector<Intervention> interventions;
};

struct EncoderDecoderOutput {
  StackOutput encoder, decoder;  // if a memory was given, encoder.hidden alone
};

/// The transformer of Vaswani et al. (2017, section 3.1): an encoder of num_layers blocks and a decoder of
/// decoder_layers() blocks that also attend to the encoder's output. They share no weights.
class EncoderDecoderStackImpl : public torch::nn::Module {
 public:
  /// Throws c10::Error if the configuration is invalid or not an encoder-decoder's.
  explicit EncoderDecoderStackImpl(const TransformerConfig& config);

  EncoderDecoderOutput forward(const EncoderDecoderInputs& inputs);

  TransformerStack encoder{nullptr}, decoder{nullptr};
};
TORCH_MODULE(EncoderDecoderStack);

}  // namespace zoo
