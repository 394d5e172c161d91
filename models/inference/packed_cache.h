#pragma once

#include <functional>
#include <vector>

#include "models/inference/memory.h"
#include "models/kernels/packed/inference_kernels.h"

namespace zoo::inference {

struct CacheShape {
  std::size_t layers, slots, heads;  // slots: sequences; heads: of keys and values (Hkv)
  std::size_t head_dim, capacity;    // positions of a slot; rounded up to full panels
  kernels::WeightType type = kernels::WeightType::kFloat32;  // or kBfloat16, kInt8
  std::size_t window = 0;          // positions that a token sees in layers with a window, itself among them
  std::vector<bool> has_window{};  // per layer; empty: none has
};

/// KV cache of several sequences in the attention kernel's layout. The system allocates memory for positions
/// when they are first written; layers with a window free positions that no further token sees.
class PackedCache {
 public:
  /// Number of positions kept before the window, so that rejected drafts can be rewound.
  static constexpr std::size_t kSpare = 256;

  PackedCache() = default;
  explicit PackedCache(const CacheShape& shape);

  kernels::HeadCache head(std::size_t layer, std::size_t slot, std::size_t head) const;

  /// Copies positions [first, last) of slot `from` of `source` to slot `to`, for all layers and heads. The
  /// caches may differ in their number of slots. Earlier positions that both slots have are equal.
  void copy(const PackedCache& source, std::size_t from, std::size_t to, std::size_t first, std::size_t last);

  /// In layers with a window, frees what no token after the first `length` of a slot sees, except kSpare.
  void forget(std::size_t slot, std::size_t length);

  void clear(std::size_t slot);

  /// Visits the memory of the first `length` positions of a slot, for all layers and heads.
  void each_part(std::size_t slot, std::size_t length,
                 const std::function<void(std::byte* data, std::size_t size)>& visit) const;
  /// Sum of these sizes.
  std::size_t bytes_of(std::size_t length) const {
    return kernels::panel_count(length) * (keys_ + values_) * shape_.heads * shape_.layers;
  }
  /// True if no layer has dropped positions of a slot.
  bool is_whole(std::size_t slot) const { return forgotten_[slot] == 0; }

  /// Memory of a position of a slot, in all layers.
  std::size_t position_bytes() const { return head_bytes() / shape_.capacity * shape_.heads * shape_.layers; }

  /// True if a slot still has all positions that the token after the first `length` sees.
  bool serves(std::size_t slot, std::size_t length) const;

  /// Call before a slot is written again from its first position on.
  void restart(std::size_t slot) { forgotten_[slot] = 0; }

  const CacheShape& shape() const { return shape_; }

 private:
  bool has_window(std::size_t layer) const { return !shape_.has_window.empty() && shape_.has_window[layer]; }

  std::size_t head_bytes() const { return panels_ * (keys_ + values_); }

  CacheShape shape_{};
  std::size_t panels_ = 0, keys_ = 0, values_ = 0;  // of a head; bytes of its keys and values in a panel
  Memory memory_;
  std::vector<std::size_t> forgotten_;  // per slot, positions that layers with a window no longer have
};

}  // namespace zoo::inference
