#include "models/encoder/encoder.h"

#include <ATen/ops/tanh.h>

#include "models/encoder/heads.h"
#include "models/layers/dropout.h"
#include "models/layers/initial_weights.h"

namespace zoo::encoder {
namespace {

std::int64_t count(const torch::nn::Module& module) {
  std::int64_t sum = 0;
  for (const auto& parameter : module.parameters()) sum += parameter.numel();
  return sum;
}

}  // namespace

PoolerImpl::PoolerImpl(std::int64_t hidden_size) {
  dense = register_module("dense", Linear(hidden_size, hidden_size));
}

at::Tensor PoolerImpl::forward(const at::Tensor& hidden) {
  return at::tanh(dense(hidden.select(1, 0)));
}

EncoderModel::EncoderModel(const TransformerConfig& config, bool with_pooler) : Model(config) {
  config.validate();
  TORCH_CHECK(config.shape == Shape::kEncoder, "a model of this kind is an encoder");
  embeddings = register_module("embeddings", Embeddings(config));
  stack = register_module("stack", TransformerStack(config));
  if (with_pooler) pooler = register_module("pooler", Pooler(config.hidden_size));
}

ModelOutput EncoderModel::forward(const ModelInputs& inputs) {
  StackOutput result = stack(StackInputs{.embeddings = embeddings(inputs),
                                         .attention_mask = inputs.attention_mask,
                                         .output_hidden_states = inputs.output_hidden_states,
                                         .output_attentions = inputs.output_attentions});
  ModelOutput output;
  output.last_hidden_state = std::move(result.hidden);
  output.hidden_states = std::move(result.hidden_states);
  output.attentions = std::move(result.attentions);
  if (pooler) output.pooler_output = pooler(output.last_hidden_state);
  apply_head(inputs, output);
  return output;
}

void EncoderModel::apply_head(const ModelInputs& inputs, ModelOutput&) {
  TORCH_CHECK(!inputs.labels.defined(), "a bare model has no loss: labels need a head");
}

at::Tensor EncoderModel::drop(const at::Tensor& x, double rate) const {
  return rate > 0 && is_training() ? zoo::dropout(x, rate) : x;
}

void EncoderModel::initialize(at::Generator generator) {
  draw_all_normal(*this, config_.initializer_range, generator);
}

std::vector<std::pair<std::string, std::int64_t>> EncoderModel::components() const {
  std::vector<std::pair<std::string, std::int64_t>> parts;
  parts.emplace_back("token embedding", count(*embeddings->word));
  parts.emplace_back("position embedding", count(*embeddings->position));
  if (embeddings->token_type) parts.emplace_back("token type embedding", count(*embeddings->token_type));
  if (embeddings->projection) parts.emplace_back("embedding projection", count(*embeddings->projection));
  std::int64_t attention = 0, feed_forward = 0, norms = count(*embeddings->norm);
  for (const auto& module : *stack->blocks) {
    const auto& block = *module->as<BlockImpl>();
    attention += count(*block.attention);
    feed_forward += count(*block.feed_forward);
    norms += count(*block.attention_norm) + count(*block.feed_forward_norm);
  }
  parts.emplace_back("attention", attention);
  parts.emplace_back("feed-forward", feed_forward);
  parts.emplace_back("norms", norms);
  if (pooler) parts.emplace_back("pooler", count(*pooler));
  std::int64_t known = 0;
  for (const auto& [name, size] : parts) known += size;
  if (!head_name().empty()) parts.emplace_back(head_name(), parameter_count() - known);
  return parts;
}

std::shared_ptr<Model> build(const TransformerConfig& config, Head head, const Style& style) {
  switch (head) {
    case Head::kBase:
      return std::make_shared<EncoderModel>(config, style.has_pooler);
    case Head::kMaskedLm:
      return std::make_shared<MaskedLm>(config, style);
    case Head::kNextSentence:
      return std::make_shared<NextSentence>(config);
    case Head::kSequenceClassification:
      return std::make_shared<SequenceClassifier>(config, style);
    case Head::kTokenClassification:
      return std::make_shared<TokenClassifier>(config);
    case Head::kQuestionAnswering:
      return std::make_shared<QuestionAnswering>(config);
    default:
      TORCH_CHECK(false, "an encoder has no ", name_of(head), " head");
  }
}

}  // namespace zoo::encoder
