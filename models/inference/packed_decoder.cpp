#include "models/inference/packed_decoder.h"

#include <ATen/ops/from_blob.h>

#include "models/inference/packed_session.h"
#include "models/layers/embeddings.h"

namespace zoo {
namespace inference {
namespace {

// Adds a table's row to x, or copies it there.
template <bool kAdds>
void read_row(const at::Tensor& table, std::int64_t row, float* x) {
  const std::int64_t width = table.size(1);
  const auto take = [&](const auto* from) {
    from += row * table.stride(0);
    for (std::int64_t i = 0; i < width; ++i) {
      const auto value = static_cast<float>(from[i]);
      x[i] = kAdds ? x[i] + value : value;
    }
  };
  switch (table.scalar_type()) {
    case at::kFloat:
      return take(table.const_data_ptr<float>());
    case at::kBFloat16:
      return take(table.const_data_ptr<at::BFloat16>());
    case at::kHalf:
      return take(table.const_data_ptr<at::Half>());
    default:
      TORCH_CHECK(false, "an embedding of ", table.scalar_type(), " cannot be read");
  }
}

at::Tensor rows_of(const at::Tensor& table) {
  return table.stride(1) == 1 ? table.detach() : table.detach().contiguous();
}

}  // namespace

PackedDecoder::PackedDecoder(Model& model, const PackOptions& options) : config_(model.config()) {
  const ModelParts parts = model.parts();
  TORCH_CHECK(parts.generates(), "only a language model can be packed");
  TORCH_CHECK(can_pack(model), "a model of this kind cannot be packed");
  token_embedding_ = rows_of(parts.embeddings->token->weight);
  if (config_.has_position_table()) position_embedding_ = rows_of(parts.embeddings->position_table());
  if (parts.embeddings->norm) embedding_norm_ = parts.embeddings->norm.ptr();
  if (parts.encoder) encoder_ = std::make_unique<PackedStack>(*parts.encoder, options);
  stack_ = std::make_unique<PackedStack>(*parts.decoder, options);
  head_ = PackedLinear(parts.head.weight, parts.head.bias, options.weights);
}

std::size_t PackedDecoder::bytes() const {
  return head_.bytes() + stack_->bytes() + (encoder_ ? encoder_->bytes() : 0);
}

std::size_t PackedDecoder::cache_bytes_per_token() const {
  const CacheShape shape = stack_->cache_shape(1, 1);
  const std::size_t panel = kernels::key_bytes(shape.type, shape.head_dim, kernels::kPanelOutputs) +
                            kernels::value_bytes(shape.type, shape.head_dim, kernels::kPanelOutputs);
  return shape.layers * shape.heads * panel / kernels::kPanelOutputs;
}

void PackedDecoder::embed(std::int64_t id, std::size_t position, float* x) const {
  TORCH_CHECK(id >= 0 && id < token_embedding_.size(0), "the id ", id, " is outside the vocabulary of ",
              token_embedding_.size(0), " ids");
  read_row<false>(token_embedding_, id, x);
  if (config_.token_scale() != 1.0) {
    const auto scale = static_cast<float>(config_.token_scale());
    for (std::int64_t i = 0; i < config_.hidden_size; ++i) x[i] *= scale;
  }
  add_position(position, x);
  if (!embedding_norm_) return;
  at::Tensor row = at::from_blob(x, {config_.hidden_size}, at::kFloat);
  row.copy_(embedding_norm_->forward(row));
}

void PackedDecoder::add_position(std::size_t position, float* x) const {
  if (!position_embedding_.defined()) return;
  const std::int64_t row = config_.position_offset + static_cast<std::int64_t>(position);
  TORCH_CHECK(row < position_embedding_.size(0), "position ", position, " is outside the model's ",
              config_.max_positions, " positions");
  read_row<true>(position_embedding_, row, x);
}

void PackedDecoder::logits(const float* hidden, std::size_t rows, float* result) const {
  const auto width = static_cast<std::size_t>(config_.hidden_size);
  const WeightType type = kernels::prepared_type(head_.weight().type, rows);
  const std::size_t row_bytes = kernels::prepared_row_bytes(type, width);
  const std::size_t groups = kernels::scales_in_row(type, width);
  prepared_.grow_to(rows * row_bytes);
  scales_.grow_to(rows * groups * sizeof(float));
  sums_.grow_to(rows * groups * sizeof(std::int32_t));
  const kernels::PreparedRows prepared{type, prepared_.data(), row_bytes, scales_.as<float>(),
                                       sums_.as<std::int32_t>()};
  const kernels::PackedProduct product{.weight = &head_.weight(),
                                       .rows = prepared,
                                       .row_count = rows,
                                       .result = result,
                                       .result_row = head_.weight().outputs};
  const kernels::InferenceKernels& kernels = kernels::inference_kernels();
  run_team([&](const Team& team) {
    const Team::Part own = team.part_of(rows);
    kernels.prepare({.input = hidden, .input_row = width, .width = width}, prepared, own.first, own.last);
    team.wait();
    const Team::Part part = team.part_of(product.weight->outputs, kernels::kPanelOutputs);
    kernels.multiply(product, part.first, part.last);
  });
}

std::unique_ptr<DecodingSession> PackedDecoder::begin(std::int64_t rows, std::int64_t capacity) {
  TORCH_CHECK(!encoder_, "an encoder-decoder begins with what its encoder reads");
  return std::make_unique<PackedSession>(*this, static_cast<std::size_t>(rows),
                                         static_cast<std::size_t>(capacity));
}

std::unique_ptr<DecodingSession> PackedDecoder::begin(const std::vector<TokenIds>& sources,
                                                      std::int64_t capacity) {
  TORCH_CHECK(encoder_, "a decoder has no encoder to read sources");
  auto session = std::make_unique<PackedSession>(*this, sources.size(), static_cast<std::size_t>(capacity));
  session->read_sources(sources);
  return session;
}

}  // namespace inference

bool can_pack(const Model& model) {
  using inference::PackedStack;
  const ModelParts parts = model.parts();
  if (!parts.generates() || parts.head.dense || parts.head.norm) return false;
  // embed() has no segments and no projection.
  const EmbeddingsImpl& embeddings = *parts.embeddings;
  if (embeddings.token_type || embeddings.projection ||
      model.config().position_count == PositionCount::kNotPadding) {
    return false;
  }
  return PackedStack::supports(*parts.decoder) && (!parts.encoder || PackedStack::supports(*parts.encoder));
}

std::unique_ptr<inference::PackedDecoder> pack(Model& model, const inference::PackOptions& options) {
  return std::make_unique<inference::PackedDecoder>(model, options);
}

}  // namespace zoo
