#pragma once

#include "models/kernels/elementary.h"

namespace zoo::kernels {

/// Replaces scores [0, end), full vectors, by e^(scale (score - largest)), and hidden ones, -infinity, by 0.
/// Returns their sum, by which the caller divides for the softmax.
ZOO_INLINE float exponentials(float* scores, std::size_t end, float largest, float scale = 1) {
  Lanes sums = {};
  for (std::size_t j = 0; j < end; j += kLanes) {
    const Lanes score = load(scores + j);
    const Lanes x = select(score == -__builtin_inff(), Lanes{}, exponential((score - largest) * scale));
    store(scores + j, x);
    sums += x;
  }
  return sum_of(sums);
}

}  // namespace zoo::kernels
