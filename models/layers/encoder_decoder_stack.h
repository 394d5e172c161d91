#pragma once

#include "models/layers/stack.h"

namespace zoo {

/// What a pass through an encoder and a decoder may use besides their embeddings.
struct EncoderDecoderInputs {
  at::Tensor encoder_embeddings;  // [B, S, C]; not needed when `memory` is given
  at::Tensor decoder_embeddings;  // [B, T, C]
  at::Tensor attention_mask;      // [B, S] of the encoder's sequence, 1 keeps. Undefined: nothing is hidden.
  at::Tensor memory;  // [B, S, C], the encoder's output if it is known. Undefined: it is computed.
  at::Tensor decoder_attention_mask;  // [B, T and what the cache holds], of the decoder's sequence
  KeyValueCache* cache = nullptr;     // the decoder's
  bool output_hidden_states = false;
  bool output_attentions = false;
};

struct EncoderDecoderOutput {
  StackOutput encoder, decoder;  // of a memory that was given, encoder.hidden alone
};

/// The transformer of Vaswani et al. (2017, section 3.1): an encoder of num_layers blocks and a decoder of
/// decoder_layers() blocks, each of which attends to the encoder's output too. They share no weights.
class EncoderDecoderStackImpl : public torch::nn::Module {
 public:
  /// Throws c10::Error for a configuration that is not valid or not an encoder-decoder's.
  explicit EncoderDecoderStackImpl(const TransformerConfig& config);

  EncoderDecoderOutput forward(const EncoderDecoderInputs& inputs);

  TransformerStack encoder{nullptr}, decoder{nullptr};
};
TORCH_MODULE(EncoderDecoderStack);

}  // namespace zoo
