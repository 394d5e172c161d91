#include "models/tutorial/models.h"

#include <cmath>

#include "models/heads/losses.h"

namespace zoo::tutorial {
namespace {

// torch::nn::Embedding's rule.
void draw(EmbeddingImpl& embedding, const at::Generator& generator) {
  const at::NoGradGuard no_grad;
  embedding.weight.normal_(0, 1, generator);
}

// torch::nn::Linear's: weight, then bias, uniform on +-1/sqrt(in).
void draw(LinearImpl& linear, const at::Generator& generator) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(linear.weight.size(1)));
  const at::NoGradGuard no_grad;
  linear.weight.uniform_(-bound, bound, generator);
  if (linear.bias.defined()) linear.bias.uniform_(-bound, bound, generator);
}

std::int64_t count(const torch::nn::Module& module) {
  std::int64_t sum = 0;
  for (const auto& parameter : module.parameters()) sum += parameter.numel();
  return sum;
}

void check_ids(const ModelInputs& inputs) {
  const at::Tensor& ids = inputs.input_ids;
  TORCH_CHECK(ids.defined() && ids.dim() == 2 && ids.size(1) > 0, "input_ids must be [batch, length], got ",
              ids.defined() ? ids.sizes() : at::IntArrayRef());
}

// Who may see whom: everybody, but for padding.
AttentionMask mask_of(const ModelInputs& inputs, const at::Tensor& x) {
  return make_attention_mask(inputs.attention_mask, {.queries = x.size(1), .keys = x.size(1)},
                             x.scalar_type(), x.device());
}

}  // namespace

WordPrediction::WordPrediction(const TransformerConfig& config) : Model(config) {
  config.validate();
  embed = register_module("embed", Embedding(config.vocab_size, config.hidden_size));
  linear = register_module("linear", Linear(config.hidden_size, config.vocab_size));
}

ModelOutput WordPrediction::forward(const ModelInputs& inputs) {
  check_ids(inputs);
  ModelOutput output;
  output.last_hidden_state = embed(inputs.input_ids);
  if (inputs.output_hidden_states) output.hidden_states = {output.last_hidden_state};
  output.logits =
      linear(inputs.last_logits_only ? output.last_hidden_state.slice(1, -1) : output.last_hidden_state);
  if (inputs.targets.defined()) {
    output.loss = cross_entropy(output.logits, inputs.targets);
  } else if (inputs.labels.defined()) {
    TORCH_CHECK(inputs.labels.sizes() == inputs.input_ids.sizes(), "labels must be ",
                inputs.input_ids.sizes(), " as input_ids, got ", inputs.labels.sizes());
    output.loss = cross_entropy(output.logits, shift_left(inputs.labels));
  }
  if (inputs.cache != nullptr) inputs.cache->advance(inputs.input_ids.size(1));
  return output;
}

void WordPrediction::initialize(at::Generator generator) {
  draw(*embed, generator);
  draw(*linear, generator);
}

std::vector<std::pair<std::string, std::int64_t>> WordPrediction::components() const {
  return {{"token embedding", count(*embed)}, {"output projection", count(*linear)}};
}

FirstWordClassifier::FirstWordClassifier(const TransformerConfig& config) : Model(config) {
  config.validate();
  TORCH_CHECK(config.num_heads == 1, "the classifier of first words has one head, got ", config.num_heads);
  const std::int64_t width = config.hidden_size;
  embed = register_module("embed", Embedding(config.vocab_size, width));
  qkv = register_module("qkv", Linear(width, 3 * width, /*with_bias=*/false));
  fc = register_module("fc", Linear(width, config.num_labels));
}

ModelOutput FirstWordClassifier::forward(const ModelInputs& inputs) {
  check_ids(inputs);
  const at::Tensor x = embed(inputs.input_ids);
  const auto parts = qkv(x).unsqueeze(1).chunk(3, -1);  // [B, 1, T, C] each
  const AttentionOutput attended = scaled_dot_product_attention(
      parts[0], parts[1], parts[2], mask_of(inputs, x), {.need_weights = inputs.output_attentions});
  ModelOutput output;
  output.last_hidden_state = attended.output.squeeze(1);
  if (inputs.output_hidden_states) output.hidden_states = {x, output.last_hidden_state};
  if (inputs.output_attentions) output.attentions = {attended.weights};
  output.logits = fc(output.last_hidden_state.select(1, 0));
  if (inputs.labels.defined()) output.loss = sequence_loss(output.logits, inputs.labels, config_);
  return output;
}

void FirstWordClassifier::initialize(at::Generator generator) {
  draw(*embed, generator);
  draw(*qkv, generator);  // the draws of three projections of the same bound, one after the other
  draw(*fc, generator);
}

std::vector<std::pair<std::string, std::int64_t>> FirstWordClassifier::components() const {
  return {{"token embedding", count(*embed)}, {"attention", count(*qkv)}, {"classifier", count(*fc)}};
}

LastWordClassifier::LastWordClassifier(const TransformerConfig& config) : Model(config) {
  config.validate();
  embed = register_module("embed", Embedding(config.vocab_size, config.hidden_size));
  attention = register_module("attention", SelfAttention(config));
  fc = register_module("fc", Linear(config.hidden_size, config.num_labels));
}

ModelOutput LastWordClassifier::forward(const ModelInputs& inputs) {
  check_ids(inputs);
  const at::Tensor x = embed(inputs.input_ids);
  const AttentionOutput attended = attention(
      x, SelfAttentionContext{.mask = mask_of(inputs, x), .need_weights = inputs.output_attentions});
  ModelOutput output;
  output.last_hidden_state = attended.output;
  if (inputs.output_hidden_states) output.hidden_states = {x, output.last_hidden_state};
  if (inputs.output_attentions) output.attentions = {attended.weights};
  output.logits = fc(output.last_hidden_state.select(1, -1));
  if (inputs.labels.defined()) output.loss = sequence_loss(output.logits, inputs.labels, config_);
  return output;
}

void LastWordClassifier::initialize(at::Generator generator) {
  draw(*embed, generator);
  draw(*attention->qkv, generator);
  draw(*attention->out, generator);
  draw(*fc, generator);
}

std::vector<std::pair<std::string, std::int64_t>> LastWordClassifier::components() const {
  return {{"token embedding", count(*embed)}, {"attention", count(*attention)}, {"classifier", count(*fc)}};
}

}  // namespace zoo::tutorial
