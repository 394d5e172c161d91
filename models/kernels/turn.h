#pragma once

#include "models/kernels/vector.h"

namespace zoo::kernels {

/// One step of turn(), a transpose: swaps lane l of row i with lane l ^ S of row i ^ S where they differ in
/// that bit.
template <std::size_t S>
ZOO_INLINE void exchange(Lanes (&rows)[kLanes]) {
#define ZOO_LOW(l) ((l)&S ? 16 + (l)-S : (l))
#define ZOO_HIGH(l) ((l)&S ? 16 + (l) : (l) + S)
#define ZOO_SIXTEEN(f) \
  f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7), f(8), f(9), f(10), f(11), f(12), f(13), f(14), f(15)
  for (std::size_t i = 0; i < kLanes; ++i) {
    if ((i & S) != 0) continue;
    const Lanes x = rows[i], y = rows[i + S];
    rows[i] = __builtin_shufflevector(x, y, ZOO_SIXTEEN(ZOO_LOW));
    rows[i + S] = __builtin_shufflevector(x, y, ZOO_SIXTEEN(ZOO_HIGH));
  }
#undef ZOO_SIXTEEN
#undef ZOO_HIGH
#undef ZOO_LOW
}

/// Transposes the rows.
ZOO_INLINE void turn(Lanes (&rows)[kLanes]) {
  exchange<1>(rows);
  exchange<2>(rows);
  exchange<4>(rows);
  exchange<8>(rows);
}

}  // namespace zoo::kernels
