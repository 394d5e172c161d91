#pragma once

#include <cstddef>
#include <cstdint>

namespace zoo::kernels {

/// Drops element i if the i-th word of Philox4x32-10 (Salmon et al., 2011) with this seed is below
/// `threshold`, and multiplies the others by `scale`.
struct DropoutMask {
  std::uint64_t seed;
  std::uint32_t threshold;  // rate * 2^32
  float scale;              // 1 / (1 - rate)
};

/// Number of elements that one counter per lane decides.
constexpr std::size_t kMaskBlock = 64;

/// Masks elements of x in the blocks [first, last) of `size` elements; `to` may be x.
void apply(const DropoutMask& mask, const float* x, float* to, std::size_t size, std::size_t first,
           std::size_t last);

}  // namespace zoo::kernels
