#include "models/inference/packed_cache.h"

#include <algorithm>
#include <cstring>

#include <c10/util/Exception.h>

#include "data/base/sizes.h"

namespace zoo::inference {

PackedCache::PackedCache(const CacheShape& shape)
    : shape_(shape),
      panels_(kernels::panel_count(shape.capacity)),
      keys_(kernels::key_bytes(shape.type, shape.head_dim, kernels::kPanelOutputs)),
      values_(kernels::value_bytes(shape.type, shape.head_dim, kernels::kPanelOutputs)) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 46;  // half of the addresses of a process
  const auto bytes = checked_product({panels_, keys_ + values_, shape.heads, shape.slots, shape.layers});
  TORCH_CHECK(bytes && *bytes <= kMostBytes, "a KV cache of ", shape.slots, " rows of ", shape.capacity,
              " tokens is too large: take a smaller max_new_tokens, max_length or context");
  shape_.capacity = panels_ * kernels::kPanelOutputs;
  memory_ = Memory(*bytes);
  forgotten_.resize(shape.slots);
}

kernels::HeadCache PackedCache::head(std::size_t layer, std::size_t slot, std::size_t head) const {
  std::byte* begin = memory_.data() + ((layer * shape_.slots + slot) * shape_.heads + head) * head_bytes();
  return {begin, begin + panels_ * keys_};
}

void PackedCache::copy(const PackedCache& source, std::size_t from, std::size_t to, std::size_t first,
                       std::size_t last) {
  const std::size_t forgotten = source.forgotten_[from];
  for (std::size_t layer = 0; layer < shape_.layers; ++layer) {
    std::size_t begin = first;
    if (has_window(layer)) begin = forgotten_[to] > forgotten ? forgotten : std::max(first, forgotten);
    if (begin >= last) continue;
    // The panels that hold the positions.
    const std::size_t panel = begin / kernels::kPanelOutputs, count = kernels::panel_count(last) - panel;
    for (std::size_t h = 0; h < shape_.heads; ++h) {
      const kernels::HeadCache read = source.head(layer, from, h), written = head(layer, to, h);
      std::memcpy(written.keys + panel * keys_, read.keys + panel * keys_, count * keys_);
      std::memcpy(written.values + panel * values_, read.values + panel * values_, count * values_);
    }
  }
  forgotten_[to] = forgotten;
}

void PackedCache::forget(std::size_t slot, std::size_t length) {
  const std::size_t kept = shape_.window + kSpare;
  // Waits for another kSpare positions, to call the system less often.
  if (shape_.has_window.empty() || length < forgotten_[slot] + kept + kSpare) return;
  const std::size_t panels = (length - kept) / kernels::kPanelOutputs;
  forgotten_[slot] = panels * kernels::kPanelOutputs;
  for (std::size_t layer = 0; layer < shape_.layers; ++layer) {
    for (std::size_t h = 0; has_window(layer) && h < shape_.heads; ++h) {
      const kernels::HeadCache cache = head(layer, slot, h);
      Memory::give_back(cache.keys, panels * keys_);
      Memory::give_back(cache.values, panels * values_);
    }
  }
}

void PackedCache::clear(std::size_t slot) {
  for (std::size_t layer = 0; layer < shape_.layers; ++layer)
    Memory::give_back(head(layer, slot, 0).keys, shape_.heads * head_bytes());
  restart(slot);
}

void PackedCache::each_part(std::size_t slot, std::size_t length,
                            const std::function<void(std::byte* data, std::size_t size)>& visit) const {
  const std::size_t panels = kernels::panel_count(length);
  for (std::size_t layer = 0; layer < shape_.layers; ++layer) {
    for (std::size_t h = 0; h < shape_.heads; ++h) {
      const kernels::HeadCache cache = head(layer, slot, h);
      visit(cache.keys, panels * keys_);
      visit(cache.values, panels * values_);
    }
  }
}

bool PackedCache::serves(std::size_t slot, std::size_t length) const {
  return length == 0 || forgotten_[slot] == 0 || forgotten_[slot] + shape_.window <= length + 1;
}

}  // namespace zoo::inference
