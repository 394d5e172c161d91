#include "models/encoder_decoder/encoder_decoder.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>

#include "models/ops/dropout.h"

namespace zoo {

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
    case Head::kBase:
      break;
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
    case Head::kQuestionAnswering:
      span = register_module("span", Linear(width, 2));
      break;
    default:
      TORCH_CHECK(false, "an encoder-decoder has no ", name_of(head), " head");
  }
}

ModelOutput EncoderDecoderModel::forward(const ModelInputs& inputs) {
  EncoderDecoderInputs stack_inputs{.attention_mask = inputs.attention_mask,
                                    .memory = inputs.memory,
                                    .decoder_attention_mask = inputs.decoder_attention_mask,
                                    .decoder_positions = inputs.position_ids,
                                    .cache = inputs.cache,
                                    .output_hidden_states = inputs.output_hidden_states,
                                    .output_attentions = inputs.output_attentions,
                                    .output_heads = inputs.output_heads,
                                    .output_activations = inputs.output_activations,
                                    .interventions = inputs.interventions};
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
  output.activations = std::move(result.decoder.activations);
  output.encoder_activations = std::move(result.encoder.activations);
  output.heads = std::move(result.encoder.heads);
  output.heads.insert(output.heads.end(), result.decoder.heads.begin(), result.decoder.heads.end());
  if (head_ == Head::kSeq2SeqLm) apply_head(inputs, output);
  if (sentence_classifier) classify(inputs, output);
  if (span) find_span(inputs, output);
  return output;
}

at::Tensor EncoderDecoderModel::decoder_ids(const ModelInputs& inputs) const {
  if (inputs.decoder_input_ids.defined()) return inputs.decoder_input_ids;
  if (sentence_classifier || span) return shifted_right(inputs.input_ids);
  return inputs.labels.defined() ? shifted_right(inputs.labels) : at::Tensor();
}

at::Tensor EncoderDecoderModel::shifted_right(const at::Tensor& ids) const {
  const bool wraps = config_.shifted_labels == ShiftedLabels::kLastLabel;
  TORCH_CHECK((wraps || config_.decoder_start_token_id >= 0) && config_.pad_token_id >= 0,
              "the decoder reads ids shifted right: decoder_start_token_id comes first and pad_token_id "
              "stands for ignored "
              "labels, but the configuration lacks them; give decoder_input_ids");
  const at::Tensor labels = ids.masked_fill(ids.eq(-100), config_.pad_token_id);
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

void EncoderDecoderModel::classify(const ModelInputs& inputs, ModelOutput& output) const {
  const at::Tensor &ids = inputs.input_ids, &hidden = output.last_hidden_state;
  TORCH_CHECK(hidden.size(1) == ids.size(1),
              "sequences are classified at their own places: decoder_input_ids must be ", ids.sizes(),
              " as input_ids");
  const at::Tensor ends = ids.eq(config_.eos_token_id);
  TORCH_CHECK(ends.any(1).all().item<bool>(), "each sequence that is classified must have an eos_token_id (",
              config_.eos_token_id, ")");
  const at::Tensor last = (at::arange(ids.size(1), ids.options()) * ends).argmax(-1);
  const at::Tensor states =
      hidden.gather(1, last.view({-1, 1, 1}).expand({-1, 1, hidden.size(2)})).squeeze(1);
  const double rate = is_training() ? config_.classifier_dropout : 0.0;
  const at::Tensor dense = at::tanh(sentence_dense->forward(ops::dropout(states, rate)));
  output.logits = sentence_classifier->forward(ops::dropout(dense, rate));
  if (inputs.labels.defined())
    output.loss = sequence_loss(output.logits, inputs.labels, config_, inputs.loss);
}

void EncoderDecoderModel::find_span(const ModelInputs& inputs, ModelOutput& output) const {
  const auto logits = span->forward(output.last_hidden_state).unbind(-1);
  output.start_logits = logits[0];
  output.end_logits = logits[1];
  if (inputs.labels.defined()) output.loss = span_loss(logits[0], logits[1], inputs.labels);
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
  if (sentence_classifier)
    parts.head = {.tokens = HeadParts::Tokens::kLastEnd,
                  .dense = sentence_dense.ptr(),
                  .weight = sentence_classifier->adapted_weight(),
                  .bias = sentence_classifier->bias};
  // A weight of all tokens' logits is a language model's.
  if (span) parts.head = {.dense = span.ptr(), .activation = Activation::kIdentity, .is_span = true};
  if (head_ != Head::kSeq2SeqLm) return parts;
  const VocabularyHead head = vocabulary_head();
  parts.head = {.weight = head.weight, .bias = head.bias, .scale = head.scale};
  return parts;
}

}  // namespace zoo
