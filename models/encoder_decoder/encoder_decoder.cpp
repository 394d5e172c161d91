#include "models/encoder_decoder/encoder_decoder.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

namespace zoo {

EncoderDecoderModel::EncoderDecoderModel(const TransformerConfig& config, Head head)
    : Model(config), head_(head) {
  config.validate();
  TORCH_CHECK(config.shape == Shape::kEncoderDecoder,
              "an encoder-decoder was given the shape of another model");
  TORCH_CHECK(head == Head::kSeq2SeqLm || head == Head::kBase, "an encoder-decoder has no ", name_of(head),
              " head");
  embeddings = decoder_embeddings = register_module("embeddings", Embeddings(config));
  if (config.has_position_table() || config.embedding_norm)
    decoder_embeddings = register_module("decoder_embeddings", Embeddings(config, embeddings->token));
  stack = register_module("stack", EncoderDecoderStack(config));
  if (head == Head::kSeq2SeqLm && !config.tie_word_embeddings) {
    lm_head = register_module("lm_head", Linear(config.hidden_size, config.vocab_size, /*with_bias=*/false));
  }
  if (head == Head::kSeq2SeqLm && config.output_bias)
    output_bias = register_buffer("output_bias", at::zeros({1, config.vocab_size}));
}

ModelOutput EncoderDecoderModel::forward(const ModelInputs& inputs) {
  EncoderDecoderInputs stack_inputs{.attention_mask = inputs.attention_mask,
                                    .memory = inputs.memory,
                                    .decoder_attention_mask = inputs.decoder_attention_mask,
                                    .cache = inputs.cache,
                                    .output_hidden_states = inputs.output_hidden_states,
                                    .output_attentions = inputs.output_attentions,
                                    .output_heads = inputs.output_heads};
  if (!inputs.memory.defined())
    stack_inputs.encoder_embeddings = embeddings(EmbeddingInputs{.ids = inputs.input_ids});
  const std::int64_t past = inputs.cache != nullptr ? inputs.cache->length() : 0;
  stack_inputs.decoder_embeddings = decoder_embeddings(EmbeddingInputs{.ids = decoder_ids(inputs),
                                                                       .position_ids = inputs.position_ids,
                                                                       .past = past,
                                                                       .name = "decoder_input_ids"});
  EncoderDecoderOutput result = stack(stack_inputs);
  ModelOutput output;
  output.encoder_last_hidden_state = std::move(result.encoder.hidden);
  output.encoder_hidden_states = std::move(result.encoder.hidden_states);
  output.encoder_attentions = std::move(result.encoder.attentions);
  output.last_hidden_state = std::move(result.decoder.hidden);
  output.hidden_states = std::move(result.decoder.hidden_states);
  output.attentions = std::move(result.decoder.attentions);
  output.cross_attentions = std::move(result.decoder.cross_attentions);
  output.heads = std::move(result.encoder.heads);
  output.heads.insert(output.heads.end(), result.decoder.heads.begin(), result.decoder.heads.end());
  if (head_ == Head::kSeq2SeqLm) apply_head(inputs, output);
  return output;
}

at::Tensor EncoderDecoderModel::decoder_ids(const ModelInputs& inputs) const {
  if (inputs.decoder_input_ids.defined() || !inputs.labels.defined()) return inputs.decoder_input_ids;
  const bool wraps = config_.shifted_labels == ShiftedLabels::kLastLabel;
  TORCH_CHECK(
      (wraps || config_.decoder_start_token_id >= 0) && config_.pad_token_id >= 0,
      "labels are shifted right: decoder_start_token_id comes first and pad_token_id stands for ignored "
      "labels, but the configuration lacks them; give decoder_input_ids");
  const at::Tensor labels = inputs.labels.masked_fill(inputs.labels.eq(-100), config_.pad_token_id);
  at::Tensor first = labels.new_full({labels.size(0), 1}, config_.decoder_start_token_id);
  if (wraps) {
    const at::Tensor last = labels.ne(config_.pad_token_id).sum(1, /*keepdim=*/true) - 1;
    first = labels.gather(1, last.clamp_min(0));
  }
  return at::cat({first, labels.slice(1, 0, -1)}, 1);
}

void EncoderDecoderModel::apply_head(const ModelInputs& inputs, ModelOutput& output) const {
  at::Tensor hidden = output.last_hidden_state;
  if (inputs.last_logits_only) hidden = hidden.slice(1, -1);
  const VocabularyHead head = vocabulary_head();
  const at::Tensor& labels = inputs.targets.defined() ? inputs.targets : inputs.labels;
  const at::IntArrayRef expected = hidden.sizes().slice(0, 2);
  TORCH_CHECK(!labels.defined() || labels.sizes() == expected, "labels must be ", expected,
              " as decoder_input_ids, got ", labels.sizes());
  if (labels.defined() && inputs.loss_only) {
    output.loss = head.loss(hidden, labels, inputs.loss);
    return;
  }
  output.logits = head.logits(hidden);
  if (labels.defined()) output.loss = cross_entropy(output.logits, labels, inputs.loss);
}

VocabularyHead EncoderDecoderModel::vocabulary_head() const {
  return {.weight = lm_head ? lm_head->adapted_weight() : embeddings->token->weight,
          .bias = output_bias.defined() ? output_bias.view(-1) : at::Tensor(),
          .scale = config_.output_scale()};
}

ModelParts EncoderDecoderModel::parts() const {
  ModelParts parts{.embeddings = embeddings.ptr(),
                   .decoder_embeddings = decoder_embeddings.ptr(),
                   .encoder = stack->encoder.ptr(),
                   .decoder = stack->decoder.ptr()};
  if (head_ != Head::kSeq2SeqLm) return parts;
  const VocabularyHead head = vocabulary_head();
  parts.head = {.weight = head.weight, .bias = head.bias, .scale = head.scale};
  return parts;
}

}  // namespace zoo
