#pragma once

#include <memory>
#include <optional>

#include "models/inference/packed_linear.h"
#include "models/model.h"

namespace zoo::inference {

/// Token and position embeddings of a decoder, or of an encoder-decoder's stack, loaded row by row. They stay
/// in the mapped file, in its type.
class PackedEmbeddings {
 public:
  PackedEmbeddings(const EmbeddingsImpl& embeddings, const TransformerConfig& config,
                   const PackOptions& options);

  /// False for segments and a projection.
  static bool supports(const EmbeddingsImpl& embeddings);

  /// Position of the token after `id`, which has this position.
  std::size_t next_position(std::int64_t id, std::size_t position) const {
    return id == skipped_id_ ? position : position + 1;
  }

  /// Writes the embedding [C] of a token at a position to x. Throws c10::Error if either has no row.
  void embed(std::int64_t id, std::size_t position, float* x) const;

 private:
  WeightRows token_;                    // [V, C]
  std::optional<WeightRows> position_;  // a row for each position
  std::shared_ptr<NormImpl> norm_;      // null: none
  std::int64_t first_position_;         // row of position 0
  std::int64_t skipped_id_;  // the padding id, which positions skip; its own position's row; -1: none
  float scale_;
};

}  // namespace zoo::inference
