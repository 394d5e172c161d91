#pragma once

#include <cstddef>
#include <cstdint>

namespace zoo::kernels {

/// Which elements are dropped: element i is, where the i-th word of Philox4x32-10 (Salmon et al., 2011) of
/// this seed is below `threshold`. The others are multiplied by `scale`.
struct Drop {
  std::uint64_t seed;
  std::uint32_t threshold;  // rate * 2^32
  float scale;              // 1 / (1 - rate)
};

/// The elements that one counter of each lane decides.
constexpr std::size_t kDropBlock = 64;

/// to[i] from x[i] for the blocks [first, last) of `size` elements; `to` may be x.
void drop(const Drop& drop, const float* x, float* to, std::size_t size, std::size_t first, std::size_t last);

}  // namespace zoo::kernels
