#pragma once

#include <vector>

#include "models/inference/memory.h"
#include "models/kernels/packed/inference_kernels.h"

namespace zoo::inference {

/// Dimensions and storage type of a cache.
struct CacheShape {
  std::size_t layers, slots, heads;  // slots: sequences; heads: of keys and values (Hkv)
  std::size_t head_dim, capacity;    // positions of a slot; rounded up to whole panels
  kernels::WeightType type = kernels::WeightType::kFloat32;  // or kBfloat16, kInt8
};

/// KV cache of several sequences, laid out for the attention kernel. The system allocates memory for
/// positions when they are first written.
class PackedCache {
 public:
  PackedCache() = default;
  explicit PackedCache(const CacheShape& shape);

  kernels::HeadCache head(std::size_t layer, std::size_t slot, std::size_t head) const;

  /// Copies positions [first, last) of slot `from` to slot `to`, for all layers and heads. The first `first`
  /// positions of both are equal already.
  void copy(std::size_t from, std::size_t to, std::size_t first, std::size_t last);

  /// Copies all slots of another cache into the first ones here; it has the same shape but fewer slots.
  void take(const PackedCache& other);

  const CacheShape& shape() const { return shape_; }

 private:
  CacheShape shape_{};
  std::size_t key_bytes_ = 0, head_bytes_ = 0;
  Memory memory_;
};

}  // namespace zoo::inference
