#pragma once

#include <memory>

#include "models/generation/decoding_session.h"
#include "models/inference/packed_stack.h"
#include "models/model.h"

namespace zoo {

namespace inference {

/// A decoder or encoder-decoder language model with packed weights. Embeddings stay where the model had them:
/// in the mapped file, of which a step reads single rows.
class PackedDecoder : public DecodingModel {
 public:
  /// Throws c10::Error for a model that can_pack() refuses.
  PackedDecoder(Model& model, const PackOptions& options);

  const TransformerConfig& config() const override { return config_; }
  std::unique_ptr<DecodingSession> begin(std::int64_t rows, std::int64_t capacity) override;
  std::unique_ptr<DecodingSession> begin(const std::vector<TokenIds>& sources,
                                         std::int64_t capacity) override;

  /// Of all packed weights.
  std::size_t bytes() const;
  /// Of those that a step of decoding reads.
  std::size_t decoder_bytes() const { return head_.bytes() + stack_->bytes(); }
  /// Of the keys and values of a token that a row has read.
  std::size_t cache_bytes_per_token() const;

 private:
  friend class PackedSession;

  /// The embeddings of a token at a position.
  void embed(std::int64_t id, std::size_t position, float* x) const;
  /// Logits [rows, V] of hidden states [rows, C] after the final norm.
  void logits(const float* hidden, std::size_t rows, float* result) const;

  TransformerConfig config_;
  at::Tensor token_embedding_, position_embedding_;  // [V, C]; [max_positions, C] or undefined
  std::unique_ptr<PackedStack> encoder_;             // of an encoder-decoder
  std::unique_ptr<PackedStack> stack_;
  PackedLinear head_;
  Workspace workspace_;
  mutable Memory prepared_, scales_, sums_;  // of the head's product
};

}  // namespace inference

/// True for a causal language model or an encoder-decoder of the zoo's families, on the CPU, of a kind that
/// the packed kernels know.
bool can_pack(const Model& model);

/// The same model with its weights packed as `options` say: it answers faster and holds its weights once
/// more, so that `model` may be let go. Throws c10::Error unless can_pack(model).
std::unique_ptr<inference::PackedDecoder> pack(Model& model, const inference::PackOptions& options);

}  // namespace zoo
