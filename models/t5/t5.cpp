#include "models/t5/t5.h"

#include "models/heads/vocabulary.h"
#include "models/layers/dropout.h"
#include "models/t5/initial_weights.h"

namespace zoo::t5 {
namespace {

std::int64_t count(const torch::nn::Module& module) {
  std::int64_t sum = 0;
  for (const auto& parameter : module.parameters()) sum += parameter.numel();
  return sum;
}

void check_ids(const char* name, const at::Tensor& ids) {
  TORCH_CHECK(ids.defined() && ids.dim() == 2 && ids.size(1) > 0, name, " must be [batch, length], got ",
              ids.defined() ? ids.sizes() : at::IntArrayRef());
}

struct StackCounts {
  std::int64_t attention = 0, cross_attention = 0, feed_forward = 0, positions = 0, norms = 0;
};

StackCounts count_parts(const TransformerStackImpl& stack) {
  StackCounts counts;
  counts.positions = count(*stack.position_bias);
  counts.norms = count(*stack.final_norm);
  for (const auto& module : *stack.blocks) {
    const auto& block = *module->as<BlockImpl>();
    counts.attention += count(*block.attention);
    counts.feed_forward += count(*block.feed_forward);
    counts.norms += count(*block.attention_norm) + count(*block.feed_forward_norm);
    if (!block.cross_attention) continue;
    counts.cross_attention += count(*block.cross_attention);
    counts.norms += count(*block.cross_attention_norm);
  }
  return counts;
}

// What is not T5's: other positions, norms and places of norms have other modules.
void check_kind(const TransformerConfig& config, Shape shape) {
  config.validate();
  TORCH_CHECK(config.shape == shape, "a T5 was given the shape of another model");
  TORCH_CHECK(config.position == PositionKind::kT5Buckets, "a T5 has t5_buckets positions, not ",
              name_of(config.position));
  TORCH_CHECK(config.norm_placement == NormPlacement::kPre, "a T5 has its norms before the sublayers");
}

at::Tensor drop_embeddings(const at::Tensor& x, const Model& model) {
  const double rate = model.config().embedding_dropout;
  return rate > 0 && model.is_training() ? dropout(x, rate) : x;
}

}  // namespace

T5::T5(const TransformerConfig& config, Head head) : Model(config), head_(head) {
  check_kind(config, Shape::kEncoderDecoder);
  TORCH_CHECK(head == Head::kSeq2SeqLm || head == Head::kBase, "a T5 has no ", name_of(head), " head");
  token_embedding = register_module("token_embedding", Embedding(config.vocab_size, config.hidden_size));
  stack = register_module("stack", EncoderDecoderStack(config));
  if (head == Head::kSeq2SeqLm && !config.tie_word_embeddings) {
    lm_head = register_module("lm_head", Linear(config.hidden_size, config.vocab_size, /*with_bias=*/false));
  }
}

ModelOutput T5::forward(const ModelInputs& inputs) {
  EncoderDecoderInputs stack_inputs{.attention_mask = inputs.attention_mask,
                                    .memory = inputs.memory,
                                    .decoder_attention_mask = inputs.decoder_attention_mask,
                                    .cache = inputs.cache,
                                    .output_hidden_states = inputs.output_hidden_states,
                                    .output_attentions = inputs.output_attentions};
  if (!inputs.memory.defined()) stack_inputs.encoder_embeddings = embed("input_ids", inputs.input_ids);
  stack_inputs.decoder_embeddings = embed("decoder_input_ids", decoder_ids(inputs));
  EncoderDecoderOutput result = stack(stack_inputs);
  ModelOutput output;
  output.encoder_last_hidden_state = std::move(result.encoder.hidden);
  output.encoder_hidden_states = std::move(result.encoder.hidden_states);
  output.encoder_attentions = std::move(result.encoder.attentions);
  output.last_hidden_state = std::move(result.decoder.hidden);
  output.hidden_states = std::move(result.decoder.hidden_states);
  output.attentions = std::move(result.decoder.attentions);
  output.cross_attentions = std::move(result.decoder.cross_attentions);
  if (head_ == Head::kSeq2SeqLm) add_logits(inputs, output);
  return output;
}

at::Tensor T5::embed(const char* name, const at::Tensor& ids) const {
  check_ids(name, ids);
  return drop_embeddings(token_embedding->forward(ids), *this);
}

at::Tensor T5::decoder_ids(const ModelInputs& inputs) const {
  if (inputs.decoder_input_ids.defined() || !inputs.labels.defined()) return inputs.decoder_input_ids;
  TORCH_CHECK(
      config_.decoder_start_token_id >= 0 && config_.pad_token_id >= 0,
      "labels are shifted right behind a decoder_start_token_id, with pad_token_id for what is ignored, "
      "and the configuration lacks them; give decoder_input_ids");
  at::Tensor ids = inputs.labels.new_full(inputs.labels.sizes(), config_.decoder_start_token_id);
  ids.slice(1, 1).copy_(inputs.labels.slice(1, 0, -1));
  return ids.masked_fill_(ids.eq(-100), config_.pad_token_id);
}

void T5::add_logits(const ModelInputs& inputs, ModelOutput& output) const {
  at::Tensor hidden = output.last_hidden_state;
  if (inputs.last_logits_only) hidden = hidden.slice(1, -1);
  if (config_.logits_scale != 1.0) hidden = hidden * config_.logits_scale;
  const VocabularyHead head{lm_head ? lm_head->weight : token_embedding->weight, {}};
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

void T5::initialize(at::Generator generator) {
  const at::NoGradGuard no_grad;
  token_embedding->weight.normal_(0.0, config_.initializer_range, generator);
  t5::initialize(*stack->encoder, config_, generator);
  t5::initialize(*stack->decoder, config_, generator);
  if (lm_head) lm_head->weight.normal_(0.0, config_.initializer_range, generator);
}

std::vector<std::pair<std::string, std::int64_t>> T5::components() const {
  const StackCounts encoder = count_parts(*stack->encoder), decoder = count_parts(*stack->decoder);
  std::vector<std::pair<std::string, std::int64_t>> parts{
      {"token embedding", count(*token_embedding)},
      {"relative positions", encoder.positions + decoder.positions},
      {"encoder attention", encoder.attention},
      {"encoder feed-forward", encoder.feed_forward},
      {"decoder attention", decoder.attention},
      {"decoder cross-attention", decoder.cross_attention},
      {"decoder feed-forward", decoder.feed_forward},
      {"norms", encoder.norms + decoder.norms}};
  if (head_ == Head::kBase) return parts;
  parts.emplace_back(lm_head ? "output projection" : "output projection (tied)",
                     lm_head ? count(*lm_head) : 0);
  return parts;
}

T5Encoder::T5Encoder(const TransformerConfig& config) : Model(config) {
  check_kind(config, Shape::kEncoder);
  token_embedding = register_module("token_embedding", Embedding(config.vocab_size, config.hidden_size));
  encoder = register_module("encoder", TransformerStack(config));
}

ModelOutput T5Encoder::forward(const ModelInputs& inputs) {
  check_ids("input_ids", inputs.input_ids);
  TORCH_CHECK(!inputs.labels.defined(), "a bare encoder has no loss: labels need a head");
  StackOutput result =
      encoder(StackInputs{.embeddings = drop_embeddings(token_embedding->forward(inputs.input_ids), *this),
                          .attention_mask = inputs.attention_mask,
                          .output_hidden_states = inputs.output_hidden_states,
                          .output_attentions = inputs.output_attentions});
  ModelOutput output;
  output.last_hidden_state = std::move(result.hidden);
  output.hidden_states = std::move(result.hidden_states);
  output.attentions = std::move(result.attentions);
  return output;
}

void T5Encoder::initialize(at::Generator generator) {
  const at::NoGradGuard no_grad;
  token_embedding->weight.normal_(0.0, config_.initializer_range, generator);
  t5::initialize(*encoder, config_, generator);
}

std::vector<std::pair<std::string, std::int64_t>> T5Encoder::components() const {
  const StackCounts counts = count_parts(*encoder);
  return {{"token embedding", count(*token_embedding)},
          {"relative positions", counts.positions},
          {"attention", counts.attention},
          {"feed-forward", counts.feed_forward},
          {"norms", counts.norms}};
}

}  // namespace zoo::t5
