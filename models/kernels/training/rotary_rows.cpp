#include "models/kernels/training/rotary_rows.h"

#include "models/kernels/vector.h"

namespace zoo::kernels::ZOO_KERNELS_FOR {

void rotate_heads(const RotaryRows& rows, const float* from, std::size_t from_head, float* to,
                  std::size_t to_head) {
  const std::size_t half = rows.size / 2;
  const float direction = rows.backward ? -1.0F : 1.0F;
  for (std::size_t head = 0; head < rows.heads; ++head, from += from_head, to += to_head) {
    for_each_vector(half, [&](std::size_t i, const auto& read, const auto& write) {
      const Lanes x = read(from + i), y = read(from + half + i), c = read(rows.cos + i),
                  s = direction * read(rows.sin + i);
      write(to + i, x * c - y * s);
      write(to + half + i, y * c + x * s);
    });
  }
}

}  // namespace zoo::kernels::ZOO_KERNELS_FOR
