#include "models/layers/stack.h"

#include <optional>

#include <ATen/ops/arange.h>

namespace zoo {
namespace {

void check_supported(const TransformerConfig& config) {
  const PositionKind position = config.position;
  const bool known = position == PositionKind::kNone || position == PositionKind::kSinusoidal ||
                     position == PositionKind::kLearned || position == PositionKind::kRotary;
  TORCH_CHECK(known, "the stack has no ", name_of(position), " positions yet");
  TORCH_CHECK(config.attention == AttentionKind::kFull, "the stack has no attention but full attention yet");
  TORCH_CHECK(config.shape != Shape::kEncoderDecoder, "one stack is an encoder or a decoder, not both");
}

}  // namespace

TransformerStackImpl::TransformerStackImpl(const TransformerConfig& config) : config_(config) {
  config.validate();
  check_supported(config);
  blocks = register_module("blocks", torch::nn::ModuleList());
  const std::int64_t own = config.sharing == Sharing::kAllLayers ? 1 : config.num_layers;
  for (std::int64_t i = 0; i < own; ++i) blocks->push_back(Block(config));
  if (config.norm_placement == NormPlacement::kPre) final_norm = register_module("final_norm", Norm(config));
}

BlockImpl& TransformerStackImpl::block(std::int64_t layer) const {
  const auto own = static_cast<std::size_t>(layer) % blocks->size();  // the only one, if it is shared
  return *blocks->ptr(own)->as<BlockImpl>();
}

StackOutput TransformerStackImpl::forward(const StackInputs& inputs) {
  at::Tensor x = inputs.embeddings;
  const std::int64_t length = x.size(1), past = inputs.cache != nullptr ? inputs.cache->length() : 0;

  SelfAttentionContext context{.cache = inputs.cache, .need_weights = inputs.output_attentions};
  const MaskShape shape{.queries = length, .keys = past + length, .causal = config_.shape == Shape::kDecoder};
  context.mask = make_attention_mask(inputs.attention_mask, shape, x.scalar_type(), x.device());

  std::optional<RotaryTable> rotary;
  if (config_.position == PositionKind::kRotary) {
    const auto options = at::TensorOptions().dtype(at::kLong).device(x.device());
    const at::Tensor positions =
        inputs.positions.defined() ? inputs.positions : at::arange(past, past + length, options);
    rotary = RotaryTable::make(positions, config_.head_size(), config_.rope_theta);
    context.rotary = &*rotary;
  }

  StackOutput output;
  for (; context.layer < config_.num_layers; ++context.layer) {
    if (inputs.output_hidden_states) output.hidden_states.push_back(x);
    AttentionOutput result = block(context.layer).forward(x, context);
    x = std::move(result.output);
    if (inputs.output_attentions) output.attentions.push_back(std::move(result.weights));
  }
  if (final_norm) x = final_norm(x);
  if (inputs.output_hidden_states) output.hidden_states.push_back(x);
  if (inputs.cache != nullptr) inputs.cache->advance(length);
  output.hidden = std::move(x);
  return output;
}

}  // namespace zoo
