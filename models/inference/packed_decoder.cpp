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

void PackedDecoder::logits(const float* hidden, std::size_t rows, float* result) const {
  const auto width = static_cast<std::size_t>(config_.hidden_size);
  const WeightType type = head_.weight().type;
  const kernels::InferenceKernels& kernels = kernels::inference_kernels();
  const std::size_t row_bytes = kernels.row_bytes(type, width);
  const std::size_t groups = kernels::scales_in_row(type, width);
  const std::lock_guard turn(turn_);
  prepared_.grow_to(rows * row_bytes);
  scales_.grow_to(rows * groups * sizeof(float));
  sums_.grow_to(rows * kernels::sums_in_row(type, width) * sizeof(std::int32_t));
  const kernels::PreparedRows prepared{type, prepared_.data(), row_bytes, scales_.as<float>(),
                                       sums_.as<std::int32_t>()};
  const kernels::PackedProduct product{.weight = &head_.weight(),
                                       .rows = prepared,
                                       .row_count = rows,
                                       .result = result,
                                       .result_row = head_.weight().outputs,
                                       .bias = head_.bias()};
  run_team([&](const Team& team) {
    const Team::Part own = team.part_of(rows);
    kernels.prepare({.input = hidden, .input_row = width, .width = width}, prepared, own.first, own.last);
    team.wait();
    const Team::Part part = team.part_of(product.weight->outputs, kernels::kPanelOutputs);
    kernels.multiply(product, part.first, part.last);
  });
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
