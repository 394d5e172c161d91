#pragma once

#include <memory>
#include <optional>

#include "models/inference/packed_linear.h"
#include "models/model.h"
#include "tokenizer/token_id.h"

namespace zoo::inference {

/// Token and position embeddings of a decoder or an encoder-decoder's stack. They stay in the mapped file.
class PackedEmbeddings {
 public:
  PackedEmbeddings(const EmbeddingsImpl& embeddings, const TransformerConfig& config,
                   const PackOptions& options);

  /// False for segments and a projection.
  static bool supports(const EmbeddingsImpl& embeddings);

  /// Writes the embeddings of `count` of the tokens, those from number `first` on, to the rows x [count, C].
  /// Token number 0 has this position. Throws c10::Error for a token or position without a row.
  void embed(const TokenIds& tokens, std::size_t position, std::size_t first, std::size_t count,
             float* x) const;

 private:
  void embed(std::int64_t id, std::size_t position, float* x) const;

  WeightRows token_;                    // [V, C]
  std::optional<WeightRows> position_;  // a row for each position
  std::shared_ptr<NormImpl> norm_;      // null: none
  std::int64_t first_position_;         // row of position 0
  std::int64_t skipped_id_;  // the padding id, which positions skip; its own position's row; -1: none
  float scale_;
};

}  // namespace zoo::inference
