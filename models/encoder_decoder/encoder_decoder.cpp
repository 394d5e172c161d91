#include "models/encoder_decoder/encoder_decoder.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

namespace zoo {

at::Tensor shifted_right(const TransformerConfig& config, const at::Tensor& ids) {
  const bool wraps = config.shifted_labels == ShiftedLabels::kLastLabel;
  TORCH_CHECK((wraps || config.decoder_start_token_id >= 0) && config.pad_token_id >= 0,
              "the decoder reads ids shifted right: decoder_start_token_id comes first and pad_token_id "
              "stands for ignored labels, but the configuration lacks them; give decoder_input_ids");
  const at::Tensor labels = ids.masked_fill(ids.eq(-100), config.pad_token_id);
  at::Tensor first = labels.new_full({labels.size(0), 1}, config.decoder_start_token_id);
  if (wraps) {
    const at::Tensor last = labels.ne(config.pad_token_id).sum(1, /*keepdim=*/true) - 1;
    first = labels.gather(1, last.clamp_min(0));
  }
  return at::cat({first, labels.slice(1, 0, -1)}, 1);
}

EncoderDecoderModel::EncoderDecoderModel(const TransformerConfig& config, Head head)
    : Model(config), head_(head) {
  config.validate();
  TORCH_CHECK(config.shape == Shape::kEncoderDecoder,
              "an encoder-decoder was given the shape of another model");
  embeddings = decoder_embeddings = register_module("embeddings", Embeddings(config));
  if (config.has_position_table() || config.embedding_norm)
    decoder_embeddings = register_module("decoder_embeddings", Embeddings(config, embeddings->token));
  stack = register_module("stack", EncoderDecoderStack(config));
  const std::int64_t width = config.hidden_size;
  switch (head) {
    case Head::kBase: break;
    case Head::kSeq2SeqLm:
      if (!config.tie_word_embeddings)
        lm_head = register_module("lm_head", Linear(width, config.vocab_size, /*with_bias=*/false));
      if (config.output_bias) output_bias = register_buffer("output_bias", at::zeros({1, config.vocab_size}));
      break;
    case Head::kSequenceClassification:
      TORCH_CHECK(config.eos_token_id >= 0,
                  "sequences are classified at their eos_token_id, which the configuration lacks");
      sentence_dense = register_module("sentence_dense", Linear(width, width));
      sentence_classifier = register_module("sentence_classifier", Linear(width, config.num_labels));
      break;
    case Head::kQuestionAnswering: span = register_module("span", Linear(width, 2)); break;
    default: TORCH_CHECK(false, "an encoder-decoder has no ", name_of(head), " head");
  }
}

ModelOutput EncoderDecoderModel::forward(const ModelInputs& inputs) {
  TORCH_CHECK(inputs.documents.empty(), "rows of several documents are for decoders");
  auto stack_inputs = observing(EncoderDecoderInputs{.attention_mask = inputs.attention_mask,
                                                     .memory = inputs.memory,
                                                     .decoder_attention_mask = inputs.decoder_attention_mask,
                                                     .decoder_positions = inputs.position_ids,
                                                     .cache = inputs.cache},
                                inputs);
  if (!inputs.memory.defined())
    stack_inputs.encoder_embeddings = embeddings(EmbeddingInputs{.ids = inputs.input_ids});
  const std::int64_t past = inputs.cache != nullptr ? inputs.cache->length() : 0;
  stack_inputs.decoder_embeddings = decoder_embeddings(EmbeddingInputs{.ids = decoder_ids(inputs),
                                                                       .position_ids = inputs.position_ids,
                                                                       .past = past,
                                                                       .name = "decoder_input_ids"});
  EncoderDecoderOutput result = stack(stack_inputs);
  ModelOutput output = model_output_of(std::move(result.decoder));
  output.encoder_last_hidden_state = std::move(result.encoder.hidden);
  output.encoder_hidden_states = std::move(result.encoder.hidden_states);
  output.encoder_attentions = std::move(result.encoder.attentions);
  output.encoder_activations = std::move(result.encoder.activations);
  output.heads.insert(output.heads.begin(), result.encoder.heads.begin(), result.encoder.heads.end());
  // A bare model reads labels as its decoder's ids.
  if (head_ != Head::kBase) run(head_parts(), inputs, output);
  return output;
}

at::Tensor EncoderDecoderModel::decoder_ids(const ModelInputs& inputs) const {
  if (inputs.decoder_input_ids.defined()) return inputs.decoder_input_ids;
  if (sentence_classifier || span) return shifted_right(config_, inputs.input_ids);
  return inputs.labels.defined() ? shifted_right(config_, inputs.labels) : at::Tensor();
}

HeadParts EncoderDecoderModel::head_parts() const {
  switch (head_) {
    case Head::kSeq2SeqLm:
      return {.labels = HeadParts::Labels::kTokens,
              .weight = lm_head ? lm_head->adapted_weight() : embeddings->token->weight,
              .bias = output_bias.defined() ? output_bias.view(-1) : at::Tensor(),
              .scale = config_.output_scale()};
    case Head::kSequenceClassification:
      return {.tokens = HeadParts::Tokens::kLastEnd,
              .dense = sentence_dense.ptr(),
              .weight = sentence_classifier->adapted_weight(),
              .bias = sentence_classifier->bias,
              .dense_dropout = config_.classifier_dropout,
              .dropout = config_.classifier_dropout};
    case Head::kQuestionAnswering:
      return {.weight = span->adapted_weight(), .bias = span->bias, .is_span = true};
    default: return {};
  }
}

ModelParts EncoderDecoderModel::parts() const {
  return {.embeddings = embeddings.ptr(),
          .decoder_embeddings = decoder_embeddings.ptr(),
          .encoder = stack->encoder.ptr(),
          .decoder = stack->decoder.ptr(),
          .head = head_parts()};
}

std::shared_ptr<Model> build_encoder_decoder(const TransformerConfig& config, Head head) {
  return std::make_shared<EncoderDecoderModel>(config, head);
}

}  // namespace zoo
