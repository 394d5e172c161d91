#include "models/encoder/embeddings.h"

#include <ATen/ops/arange.h>

#include "models/layers/dropout.h"

namespace zoo::encoder {

EmbeddingsImpl::EmbeddingsImpl(const TransformerConfig& config) : config_(config) {
  const std::int64_t width = config.embedding_width();
  const bool skips_padding = config.position_count == PositionCount::kNotPadding;
  word = register_module("word", Embedding(config.vocab_size, width, config.pad_token_id));
  position = register_module(
      "position", Embedding(config.max_positions, width, skips_padding ? config.pad_token_id : -1));
  if (config.type_vocab_size > 0) {
    token_type = register_module("token_type", Embedding(config.type_vocab_size, width));
  }
  norm = register_module("norm", Norm(config.norm, width, config.layer_norm_eps, config.norm_bias));
  if (config.embedding_size > 0)
    projection = register_module("projection", Linear(width, config.hidden_size));
}

at::Tensor EmbeddingsImpl::forward(const ModelInputs& inputs) {
  check(inputs);
  at::Tensor x = word(inputs.input_ids);
  if (token_type && inputs.token_type_ids.defined()) {
    x = x + token_type(inputs.token_type_ids);
  } else if (token_type) {
    x = x + token_type->weight[0];
  }
  x = norm(x + position(positions(inputs)));
  if (config_.embedding_dropout > 0 && is_training()) x = dropout(x, config_.embedding_dropout);
  return projection ? projection(x) : x;
}

at::Tensor EmbeddingsImpl::positions(const ModelInputs& inputs) const {
  if (inputs.position_ids.defined()) return inputs.position_ids;
  const at::Tensor& ids = inputs.input_ids;
  if (config_.position_count == PositionCount::kAll) return at::arange(ids.size(1), ids.options());
  const at::Tensor kept = ids.ne(config_.pad_token_id).to(at::kLong);
  return kept.cumsum(1) * kept + config_.pad_token_id;
}

void EmbeddingsImpl::check(const ModelInputs& inputs) const {
  const at::Tensor& ids = inputs.input_ids;
  TORCH_CHECK(ids.defined() && ids.dim() == 2 && ids.size(1) > 0, "input_ids must be [batch, length], got ",
              ids.defined() ? ids.sizes() : at::IntArrayRef());
  TORCH_CHECK(ids.size(1) <= config_.max_length(), "a sequence of ", ids.size(1),
              " tokens is longer than the model's ", config_.max_length(), " positions");
  if (!inputs.token_type_ids.defined()) return;
  TORCH_CHECK(token_type, "token_type_ids were given to a model without token types");
  TORCH_CHECK(inputs.token_type_ids.sizes() == ids.sizes(), "token_type_ids must be ", ids.sizes(),
              " as input_ids, got ", inputs.token_type_ids.sizes());
}

}  // namespace zoo::encoder
