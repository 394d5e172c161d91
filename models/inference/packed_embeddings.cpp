#include "models/inference/packed_embeddings.h"

#include <ATen/ops/from_blob.h>

#include "models/layers/embeddings.h"

namespace zoo::inference {
namespace {

// Adds a table's row to x, or copies it there.
template <bool kAdds> void read_row(const WeightRows& table, std::int64_t row, float* x) {
  const at::Tensor values = table.rows(row, row + 1).to(at::kFloat).contiguous();
  const auto* from = values.const_data_ptr<float>();
  for (std::int64_t i = 0; i < table.size(1); ++i) x[i] = kAdds ? x[i] + from[i] : from[i];
}

}  // namespace

PackedEmbeddings::PackedEmbeddings(const EmbeddingsImpl& embeddings, const TransformerConfig& config,
                                   const PackOptions& options)
    : token_(options.rows_of(embeddings.token->weight)),
      first_position_(config.first_position()),
      skipped_id_(config.position_count == PositionCount::kNotPadding ? config.pad_token_id : -1),
      scale_(static_cast<float>(config.token_scale())) {
  if (config.has_position_table()) position_ = options.rows_of(embeddings.position_table());
  if (embeddings.norm) norm_ = embeddings.norm.ptr();
}

bool PackedEmbeddings::supports(const EmbeddingsImpl& embeddings) {
  return !embeddings.token_type && !embeddings.projection;
}

void PackedEmbeddings::embed(const TokenIds& tokens, std::size_t position, std::size_t first,
                             std::size_t count, float* x) const {
  for (std::size_t t = 0; t < first + count; ++t) {
    if (t >= first) embed(tokens[t], position, x + (t - first) * static_cast<std::size_t>(token_.size(1)));
    if (tokens[t] != skipped_id_) ++position;
  }
}

void PackedEmbeddings::embed(std::int64_t id, std::size_t position, float* x) const {
  TORCH_CHECK(id >= 0 && id < token_.size(0), "the id ", id, " is outside the vocabulary of ", token_.size(0),
              " ids");
  read_row<false>(token_, id, x);
  const std::int64_t width = token_.size(1);
  if (scale_ != 1.0F) {
    for (std::int64_t i = 0; i < width; ++i) x[i] *= scale_;
  }
  if (position_) {
    const std::int64_t row = id == skipped_id_ ? id : first_position_ + static_cast<std::int64_t>(position);
    TORCH_CHECK(row < position_->size(0), "position ", position, " is outside the model's ",
                position_->size(0) - first_position_, " positions");
    read_row<true>(*position_, row, x);
  }
  if (!norm_) return;
  at::Tensor row = at::from_blob(x, {width}, at::kFloat);
  row.copy_(norm_->forward(row));
}

}  // namespace zoo::inference
