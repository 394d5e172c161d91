#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

#include "models/model.h"

namespace zoo::inference {

/// Token and position embeddings of a decoder, or of an encoder-decoder's stack, read row by row. They stay
/// in the mapped file.
class PackedEmbeddings {
 public:
  PackedEmbeddings(const EmbeddingsImpl& embeddings, const TransformerConfig& config);

  /// False for segments, a projection and positions that leave padding out.
  static bool supports(const EmbeddingsImpl& embeddings, const TransformerConfig& config);

  /// Writes the embedding [C] of a token at a position to x. Throws c10::Error if either has no row.
  void embed(std::int64_t id, std::size_t position, float* x) const;

 private:
  at::Tensor token_, position_;     // [V, C]; a row for each position, or undefined
  std::shared_ptr<NormImpl> norm_;  // null: none
  std::int64_t position_offset_;
  float scale_;
};

}  // namespace zoo::inference
