#include "models/layers/key_value_cache.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

namespace zoo {

KeyValueCache::KeyValueCache(const TransformerConfig& config, std::int64_t batch, std::int64_t capacity,
                             const at::TensorOptions& options)
    : capacity_(capacity) {
  const std::vector<std::int64_t> sizes{batch, config.kv_heads(), capacity, config.head_size()};
  const bool two_stacks = config.shape == Shape::kEncoderDecoder;
  const std::int64_t layers = two_stacks ? config.decoder_layers() : config.num_layers;
  layers_.reserve(static_cast<std::size_t>(layers));
  for (std::int64_t i = 0; i < layers; ++i) {
    layers_.push_back({at::empty(sizes, options), at::empty(sizes, options)});
  }
  if (two_stacks || config.cross_attention) memory_.resize(layers_.size());
}

KeyValueCache::View KeyValueCache::append(std::int64_t layer, const at::Tensor& keys,
                                          const at::Tensor& values) {
  const std::int64_t end = length_ + keys.size(2);
  TORCH_CHECK(end <= capacity_, "the key/value cache holds ", capacity_, " positions, ", end, " are needed");
  View& all = layers_.at(static_cast<std::size_t>(layer));
  all.keys.slice(2, length_, end).copy_(keys);
  all.values.slice(2, length_, end).copy_(values);
  return {all.keys.slice(2, 0, end), all.values.slice(2, 0, end)};
}

void KeyValueCache::truncate(std::int64_t length) {
  TORCH_CHECK(length >= 0 && length <= length_, "cannot cut a cache of ", length_, " positions to ", length);
  length_ = length;
}

std::int64_t KeyValueCache::bytes() const {
  std::int64_t sum = 0;
  for (const View& layer : layers_)
    sum += static_cast<std::int64_t>(layer.keys.nbytes() + layer.values.nbytes());
  for (const View& layer : memory_)
    if (layer.keys.defined()) sum += static_cast<std::int64_t>(layer.keys.nbytes() + layer.values.nbytes());
  return sum;
}

}  // namespace zoo
