#pragma once

#include <cstddef>

namespace zoo::kernels {

/// Heads of queries or keys that rotary positions turn (Su et al., 2021): the pairs (x[i], x[i + size / 2])
/// of a head, by the angle of its token.
struct RotaryRows {
  std::size_t heads, size;  // of each token, and elements of each head
  const float *cos, *sin;   // of this token, [size / 2]
  bool backward;            // turns back
};

/// Turns a token's heads, `from_head` and `to_head` floats apart.
void rotate_heads(const RotaryRows& rows, const float* from, std::size_t from_head, float* to,
                  std::size_t to_head);

}  // namespace zoo::kernels
