#include "models/inference/packed_decoder.h"

#include "models/inference/packed_engine.h"
#include "models/layers/embeddings.h"

namespace zoo {
namespace inference {

PackedDecoder::PackedDecoder(Model& model, const PackOptions& options) : config_(model.config()) {
  const ModelParts parts = model.parts();
  TORCH_CHECK(parts.generates(), "only a language model can be packed");
  TORCH_CHECK(can_pack(model), "a model of this kind cannot be packed");
  embeddings_.emplace(parts.decoder_embeddings ? *parts.decoder_embeddings : *parts.embeddings, config_,
                      options);
  if (parts.encoder) {
    encoder_ = std::make_unique<PackedStack>(*parts.encoder, options.for_whole_sequences());
    encoder_embeddings_.emplace(*parts.embeddings, config_, options);
  }
  stack_ = std::make_unique<PackedStack>(*parts.decoder, options);
  const at::Tensor& projection = parts.head.weight;
  PackOptions head = options;
  if (options.weights == WeightType::kInt4) head.weights = WeightType::kInt8;
  head_ = PackedLinear(projection, options.rows_of(projection), parts.head.bias, head);
  options.require_all_taken();
}

std::size_t PackedDecoder::add_adapter(const std::map<std::string, LowRankTerm>& terms) {
  adapters_.push_back(stack_->adapter(terms));
  return adapters_.size();
}

std::size_t PackedDecoder::bytes() const {
  return head_.bytes() + stack_->bytes() + (encoder_ ? encoder_->bytes() : 0);
}

std::size_t PackedDecoder::cache_bytes_per_token() const {
  return PackedCache(stack_->cache_shape(1, 1)).position_bytes();
}

}  // namespace inference

bool can_pack(const Model& model) {
  const ModelParts parts = model.parts();
  return parts.generates() && !parts.head.dense && !parts.head.norm && lacking_kernels(model).empty();
}

std::unique_ptr<inference::PackedDecoder> pack(Model& model, const inference::PackOptions& options) {
  return std::make_unique<inference::PackedDecoder>(model, options);
}

}  // namespace zoo
