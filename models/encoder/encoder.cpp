#include "models/encoder/encoder.h"

#include <utility>

#include <ATen/ops/tanh.h>

#include "models/encoder/heads.h"

namespace zoo::encoder {

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

StackOutput EncoderModel::encode(const ModelInputs& inputs) {
  const at::Tensor embedded = embeddings(EmbeddingInputs{
      .ids = inputs.input_ids, .position_ids = inputs.position_ids, .token_type_ids = inputs.token_type_ids});
  return stack(StackInputs{.embeddings = embedded,
                           .attention_mask = inputs.attention_mask,
                           .positions = inputs.position_ids,
                           .output_hidden_states = inputs.output_hidden_states,
                           .output_attentions = inputs.output_attentions,
                           .output_heads = inputs.output_heads,
                           .output_activations = inputs.output_activations,
                           .interventions = inputs.interventions});
}

ModelOutput EncoderModel::forward(const ModelInputs& inputs) {
  check_stacks(inputs.interventions, /*has_encoder=*/true, /*has_decoder=*/false);
  StackOutput result = encode(inputs);
  ModelOutput output;
  output.last_hidden_state = std::move(result.hidden);
  output.hidden_states = std::move(result.hidden_states);
  output.attentions = std::move(result.attentions);
  output.heads = std::move(result.heads);
  output.activations = std::move(result.activations);
  const auto [head, sentence_head] = std::pair(head_parts(), sentence_head_parts());
  if (pooler && !head.weight.defined()) output.pooler_output = pooler(output.last_hidden_state);
  run(head, inputs, output);
  if (!sentence_head.weight.defined()) return output;
  ModelOutput second{.last_hidden_state = output.last_hidden_state};
  run(sentence_head, {.labels = inputs.sentence_labels}, second);
  output.sentence_logits = second.logits;
  if (second.loss.defined()) output.loss = output.loss.defined() ? output.loss + second.loss : second.loss;
  return output;
}

ModelParts EncoderModel::parts() const {
  return {.embeddings = embeddings.ptr(),
          .encoder = stack.ptr(),
          .head = head_parts(),
          .sentence_head = sentence_head_parts()};
}

void EncoderModel::remove_pooler() {
  if (pooler) unregister_module("pooler");
  pooler = nullptr;
}

std::shared_ptr<Model> build(const TransformerConfig& config, Head head, const Style& style) {
  switch (head) {
    case Head::kBase:
      return std::make_shared<EncoderModel>(config, style.has_pooler);
    case Head::kMaskedLm:
      return std::make_shared<MaskedLm>(config, style);
    case Head::kNextSentence:
      return std::make_shared<NextSentence>(config);
    case Head::kPretraining:
      return std::make_shared<Pretraining>(config, style);
    case Head::kSequenceClassification:
      return std::make_shared<SequenceClassifier>(config, style);
    case Head::kTokenClassification:
      return std::make_shared<TokenClassifier>(config, style);
    case Head::kQuestionAnswering:
      return std::make_shared<QuestionAnswering>(config, style);
    case Head::kReplacedTokens:
      return std::make_shared<ReplacedTokens>(config);
    default:
      TORCH_CHECK(false, "an encoder has no ", name_of(head), " head");
  }
}

}  // namespace zoo::encoder
