#pragma once

#include <vector>

#include "models/inference/memory.h"
#include "models/kernels/packed/inference_kernels.h"

namespace zoo::inference {

/// What a cache holds keys and values of.
struct CacheShape {
  std::size_t layers, slots, heads;  // slots: sequences; heads: of keys and values (Hkv)
  std::size_t head_dim, capacity;    // positions of a slot; rounded up to whole panels
  kernels::WeightType type = kernels::WeightType::kFloat32;  // or kBfloat16, kInt8
};

/// Keys and values of sequences, laid out for the attention kernel. The system gives memory for positions
/// when they are first written.
class PackedCache {
 public:
  PackedCache() = default;
  explicit PackedCache(const CacheShape& shape);

  kernels::HeadCache head(std::size_t layer, std::size_t slot, std::size_t head) const;

  /// Positions [first, last) of a slot, of all layers and heads, become another's, whose first `first` are
  /// the same already.
  void copy(std::size_t from, std::size_t to, std::size_t first, std::size_t last);

  /// All slots of another cache, of the same shape but for fewer of them, become the first here.
  void take(const PackedCache& other);

  const CacheShape& shape() const { return shape_; }

 private:
  CacheShape shape_{};
  std::size_t key_bytes_ = 0, head_bytes_ = 0;
  Memory memory_;
};

}  // namespace zoo::inference
