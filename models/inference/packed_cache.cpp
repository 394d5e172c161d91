#include "models/inference/packed_cache.h"

#include <cstring>

namespace zoo::inference {

PackedCache::PackedCache(const CacheShape& shape) : shape_(shape) {
  shape_.capacity = kernels::panel_count(shape.capacity) * kernels::kPanelOutputs;
  key_bytes_ = kernels::key_bytes(shape.type, shape.head_dim, shape_.capacity);
  head_bytes_ = key_bytes_ + kernels::value_bytes(shape.type, shape.head_dim, shape_.capacity);
  memory_ = Memory(shape.layers * shape.slots * shape.heads * head_bytes_);
}

kernels::HeadCache PackedCache::head(std::size_t layer, std::size_t slot, std::size_t head) const {
  std::byte* begin = memory_.data() + ((layer * shape_.slots + slot) * shape_.heads + head) * head_bytes_;
  return {begin, begin + key_bytes_};
}

void PackedCache::copy(std::size_t from, std::size_t to, std::size_t first, std::size_t last) {
  if (first == last) return;
  // Copies the whole panels that hold the positions.
  const auto keys_before = [&](std::size_t panels) {
    return kernels::key_bytes(shape_.type, shape_.head_dim, panels * kernels::kPanelOutputs);
  };
  const auto values_before = [&](std::size_t panels) {
    return kernels::value_bytes(shape_.type, shape_.head_dim, panels * kernels::kPanelOutputs);
  };
  const std::size_t begin = first / kernels::kPanelOutputs, end = kernels::panel_count(last);
  const std::size_t keys = keys_before(begin), values = values_before(begin);
  for (std::size_t layer = 0; layer < shape_.layers; ++layer) {
    for (std::size_t h = 0; h < shape_.heads; ++h) {
      const kernels::HeadCache source = head(layer, from, h), target = head(layer, to, h);
      std::memcpy(target.keys + keys, source.keys + keys, keys_before(end) - keys);
      std::memcpy(target.values + values, source.values + values, values_before(end) - values);
    }
  }
}

void PackedCache::take(const PackedCache& other) {
  const std::size_t bytes = other.shape_.slots * shape_.heads * head_bytes_;
  for (std::size_t layer = 0; layer < shape_.layers; ++layer)
    std::memcpy(head(layer, 0, 0).keys, other.head(layer, 0, 0).keys, bytes);
}

}  // namespace zoo::inference
