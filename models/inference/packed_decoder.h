#pragma once

/// @file
/// Use:
///
///     const zoo::LoadedModel loaded = zoo::load_model("runs/kjv/final");
///     const auto decoder = zoo::pack(*loaded.model, {.weights = zoo::inference::WeightType::kInt8});
///     const zoo::GenerationResult result = zoo::generate(*decoder, {ids}, {.max_new_tokens = 100});

#include <memory>
#include <mutex>
#include <optional>

#include "models/generation/decoding_session.h"
#include "models/inference/packed_embeddings.h"
#include "models/inference/packed_stack.h"
#include "models/model.h"

namespace zoo {

namespace inference {

struct HeldSlots;

/// A decoder or encoder-decoder language model with packed weights. Threads may share it, but not a session:
/// the passes of its sessions take turns.
class PackedDecoder : public DecodingModel {
 public:
  /// Throws c10::Error unless can_pack(model).
  PackedDecoder(Model& model, const PackOptions& options);

  const TransformerConfig& config() const override { return config_; }
  std::unique_ptr<DecodingSession> begin(std::int64_t rows, std::int64_t capacity) override;
  std::unique_ptr<DecodingSession> begin(const std::vector<TokenIds>& sources,
                                         std::int64_t capacity) override;

  /// Adds an adapter of the decoder's weights, by their names, beside the packed weights; returns its number,
  /// for DecodingSession::adapt(). Not while other threads use the model. Throws as PackedStack::adapter().
  std::size_t add_adapter(const std::map<std::string, LowRankTerm>& terms);

  /// Bytes of all packed weights.
  std::size_t bytes() const;
  /// Bytes of the weights that a decoding step loads.
  std::size_t decoder_bytes() const { return head_.bytes() + stack_->bytes(); }
  std::size_t cache_bytes_per_token() const;

 private:
  friend class PackedSession;

  TransformerConfig config_;
  std::optional<PackedEmbeddings> embeddings_, encoder_embeddings_;
  std::unique_ptr<PackedStack> encoder_;  // of encoder-decoders only, like its embeddings
  std::unique_ptr<PackedStack> stack_;
  PackedLinear head_;
  std::vector<std::shared_ptr<const PackedAdapter>> adapters_;
  std::mutex turn_;  // of the session that uses the stacks' tables, the buffers or kept_
  Workspace workspace_;
  std::shared_ptr<HeldSlots> kept_;  // by the last session that keeps
};

}  // namespace inference

/// True for a language model with a decoder, on the CPU, that the packed kernels support.
bool can_pack(const Model& model);

/// The same model with weights packed (quantized) according to `options`. With int4 weights, the output
/// projection is int8, because each logit depends on a single row of it. Faster than the modules; has its own
/// copy of the weights, so that `model` may be freed. Throws c10::Error unless can_pack(model).
std::unique_ptr<inference::PackedDecoder> pack(Model& model, const inference::PackOptions& options);

}  // namespace zoo
