#include "models/layers/encoder_decoder_stack.h"

namespace zoo {

EncoderDecoderStackImpl::EncoderDecoderStackImpl(const TransformerConfig& config) {
  config.validate();
  TORCH_CHECK(config.shape == Shape::kEncoderDecoder, "an encoder-decoder was given the shape of one stack");
  encoder = register_module("encoder", TransformerStack(config.encoder_part()));
  decoder = register_module("decoder", TransformerStack(config.decoder_part()));
}

EncoderDecoderOutput EncoderDecoderStackImpl::forward(const EncoderDecoderInputs& inputs) {
  EncoderDecoderOutput output;
  check_stacks(inputs.interventions, /*has_encoder=*/!inputs.memory.defined(), /*has_decoder=*/true);
  if (inputs.memory.defined()) {
    output.encoder.hidden = inputs.memory;
  } else {
    output.encoder = encoder(observing(
        StackInputs{.embeddings = inputs.encoder_embeddings, .attention_mask = inputs.attention_mask},
        inputs));
  }
  output.decoder = decoder(observing(StackInputs{.embeddings = inputs.decoder_embeddings,
                                                 .attention_mask = inputs.decoder_attention_mask,
                                                 .positions = inputs.decoder_positions,
                                                 .memory = output.encoder.hidden,
                                                 .memory_mask = inputs.attention_mask,
                                                 .cache = inputs.cache},
                                     inputs));
  return output;
}

}  // namespace zoo
