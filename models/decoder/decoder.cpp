#include "models/decoder/decoder.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>

#include "models/layers/experts.h"

namespace zoo {

DecoderModel::DecoderModel(const TransformerConfig& config, Head head) : Model(config), head_(head) {
  config.validate();
  TORCH_CHECK(config.shape == Shape::kDecoder, "a decoder was given the shape of another model");
  embeddings = register_module("embeddings", Embeddings(config));
  stack = register_module("stack", TransformerStack(config));
  switch (head) {
    case Head::kBase: break;
    case Head::kCausalLm:
      if (!config.tie_word_embeddings)
        lm_head =
            register_module("lm_head", Linear(config.hidden_size, config.vocab_size, config.lm_head_bias));
      break;
    case Head::kSequenceClassification:
      score = register_module("score", Linear(config.hidden_size, config.num_labels, /*with_bias=*/false));
      break;
    default: TORCH_CHECK(false, "a decoder has no ", name_of(head), " head");
  }
}

namespace {

// [B, T]: 0, 1, … in each document. Undefined if they do not fill the rows, which the stack refuses.
at::Tensor positions_within(const std::vector<std::int64_t>& documents, const at::Tensor& ids) {
  std::vector<at::Tensor> counts;
  for (const std::int64_t length : documents) counts.push_back(at::arange(length, at::kLong));
  const at::Tensor all = at::cat(counts);
  return all.numel() == ids.numel() ? all.view_as(ids).to(ids.device()) : at::Tensor();
}

}  // namespace

ModelOutput DecoderModel::forward(const ModelInputs& inputs) {
  check_stacks(inputs.interventions, /*has_encoder=*/false, /*has_decoder=*/true);
  const HeadParts head = head_parts();
  const bool balances = head.has_vocabulary() && config_.router_loss && inputs.loss.router;
  const bool labelled = inputs.labels.defined() || inputs.targets.defined();
  const std::int64_t past = inputs.cache != nullptr ? inputs.cache->length() : 0;
  at::Tensor positions = inputs.position_ids;
  if (!inputs.documents.empty()) {
    TORCH_CHECK(!inputs.labels.defined() && !positions.defined() && !balances && !score,
                "rows of several documents take targets, not labels, position_ids or the labels of rows, and "
                "have no loss that balances experts");
    if (config_.has_position_table()) positions = positions_within(inputs.documents, inputs.input_ids);
  }
  if (!positions.defined() && inputs.attention_mask.defined() &&
      config_.position_count == PositionCount::kNotMasked) {
    const at::Tensor kept = inputs.attention_mask.to(at::kLong);
    positions = (kept.cumsum(1) * kept - 1).slice(1, past);
  }
  const at::Tensor embedded =
      embeddings(EmbeddingInputs{.ids = inputs.input_ids, .position_ids = positions, .past = past});
  ModelOutput output =
      model_output_of(stack(observing(StackInputs{.embeddings = embedded,
                                                  .attention_mask = inputs.attention_mask,
                                                  .positions = inputs.position_ids,
                                                  .documents = inputs.documents,
                                                  .cache = inputs.cache,
                                                  .output_router_logits = balances && labelled},
                                      inputs)));
  run(head, inputs, output);
  if (output.router_logits.empty()) return output;
  const at::Tensor balance =
      router_loss(output.router_logits, config_.experts_per_token, inputs.attention_mask);
  output.loss = output.loss + config_.router_loss_weight * balance;
  return output;
}

ModelParts DecoderModel::parts() const {
  return {.embeddings = embeddings.ptr(), .decoder = stack.ptr(), .head = head_parts()};
}

HeadParts DecoderModel::head_parts() const {
  if (score) return {.tokens = HeadParts::Tokens::kLast, .weight = score->adapted_weight()};
  if (head_ == Head::kBase) return {};
  return {.labels = HeadParts::Labels::kNextTokens,
          .weight = lm_head ? lm_head->adapted_weight() : embeddings->token->weight,
          .bias = lm_head ? lm_head->bias : at::Tensor(),
          .scale = config_.output_scale(),
          .softcap = config_.logits_softcap};
}

std::shared_ptr<Model> build_decoder(const TransformerConfig& config, Head head) {
  return std::make_shared<DecoderModel>(config, head);
}

}  // namespace zoo
