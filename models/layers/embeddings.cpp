#include "models/layers/embeddings.h"

#include <ATen/ops/embedding.h>

#include "models/layers/attention/positions.h"
#include "models/ops/linear.h"

namespace zoo {

EmbeddingsImpl::EmbeddingsImpl(const TransformerConfig& config, const Embedding& shared)
    : token(shared), config_(config) {
  const std::int64_t width = config.embedding_width();
  const bool skips_padding = config.position_count == PositionCount::kNotPadding;
  const std::int64_t rows = config.max_length() + config.first_position();
  if (!token)
    token = register_module(
        "token", Embedding(config.vocab_size, width, config.trains_padding ? -1 : config.pad_token_id));
  if (config.has_learned_positions()) {
    position = register_module("position", Embedding(rows, width, skips_padding ? config.pad_token_id : -1));
  } else if (config.position == PositionKind::kSinusoidal) {
    sinusoids_ = register_buffer("sinusoids", sinusoidal_positions(rows, width, config.sinusoid_order));
    if (skips_padding) sinusoids_[config.pad_token_id].zero_();
  }
  if (config.type_vocab_size > 0)
    token_type = register_module("token_type", Embedding(config.type_vocab_size, width));
  if (config.embedding_norm)
    norm = register_module("norm", Norm(config.norm, width, config.layer_norm_eps, config.norm_bias));
  if (config.embedding_size > 0)
    projection = register_module("projection", Linear(width, config.hidden_size));
}

at::Tensor EmbeddingsImpl::forward(const EmbeddingInputs& inputs) const {
  check(inputs);
  at::Tensor x = token->forward(inputs.ids);
  if (config_.token_scale() != 1.0) x = x * config_.token_scale();
  if (token_type && inputs.token_type_ids.defined()) {
    x = x + token_type->forward(inputs.token_type_ids);
  } else if (token_type) {
    x = x + token_type->weight[0];
  }
  if (config_.has_position_table()) x = x + positions(inputs);
  if (norm) x = norm->forward(x);
  x = ops::dropout(x, is_training() ? config_.embedding_dropout : 0.0);
  return projection ? projection->forward(x) : x;
}

// [T, E] or [B, T, E]
at::Tensor EmbeddingsImpl::positions(const EmbeddingInputs& inputs) const {
  const auto rows = [&](const at::Tensor& ids) {
    return position ? position->forward(ids) : at::embedding(sinusoids_, ids);
  };
  if (inputs.position_ids.defined()) return rows(inputs.position_ids + config_.first_position());
  if (config_.position_count != PositionCount::kNotPadding) {
    const std::int64_t first = config_.first_position() + inputs.past;
    return position_table().slice(0, first, first + inputs.ids.size(1));
  }
  const at::Tensor kept = inputs.ids.ne(config_.pad_token_id).to(at::kLong);
  return rows((kept.cumsum(1) + inputs.past) * kept + config_.pad_token_id);
}

void EmbeddingsImpl::check(const EmbeddingInputs& inputs) const {
  const at::Tensor& ids = inputs.ids;
  TORCH_CHECK(ids.defined() && ids.dim() == 2 && ids.size(1) > 0, inputs.name,
              " must be [batch, length], got ", ids.defined() ? ids.sizes() : at::IntArrayRef());
  const std::int64_t length = inputs.past + ids.size(1);
  // Given positions are looked up: with padding there may be more tokens than positions.
  TORCH_CHECK(
      !config_.has_position_table() || inputs.position_ids.defined() || length <= config_.max_length(),
      "a sequence of ", length, " tokens is longer than the model's ", config_.max_length(), " positions");
  check_positions(inputs);
  if (!inputs.token_type_ids.defined()) return;
  TORCH_CHECK(token_type, "token_type_ids were given to a model without token types");
  TORCH_CHECK(inputs.token_type_ids.sizes() == ids.sizes(), "token_type_ids must be ", ids.sizes(), " as ",
              inputs.name, ", got ", inputs.token_type_ids.sizes());
}

void EmbeddingsImpl::check_positions(const EmbeddingInputs& inputs) const {
  const at::Tensor& given = inputs.position_ids;
  if (!given.defined()) return;
  TORCH_CHECK(config_.takes_positions(),
              "position_ids were given to a model that takes none (position = ", name_of(config_.position),
              ")");
  const std::int64_t batch = inputs.ids.size(0), length = inputs.ids.size(1);
  TORCH_CHECK(given.sizes() == at::IntArrayRef({length}) || given.sizes() == at::IntArrayRef({1, length}) ||
                  given.sizes() == inputs.ids.sizes(),
              "position_ids must be [", length, "] or [", batch, ", ", length, "], got ", given.sizes());
}

}  // namespace zoo
