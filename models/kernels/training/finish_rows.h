#pragma once

#include "models/kernels/activations.h"
#include "models/kernels/training/matrix_product.h"

namespace zoo::kernels::ZOO_KERNELS_FOR {
namespace {

// Replaces the results of rows that a tile has just left in the L1 cache: result = result * times; or
// activated = f(result), result = f'(result); or result = f(result).
inline void finish_rows(const MatrixProduct& p, std::size_t first_row, std::size_t last_row,
                        std::size_t column, std::size_t columns) {
  if (p.times == nullptr && p.pointwise == Pointwise::kNone) return;
  with_function(p.pointwise, [&](auto f) {
    for (std::size_t row = first_row; row < last_row; ++row) {
      const std::size_t begin = row * p.result_row + column;
      for_each_vector(columns, [&](std::size_t j, const auto& read, const auto& write) {
        const std::size_t at = begin + j;
        const Lanes x = read(p.result + at);
        if (p.times != nullptr) return write(p.result + at, x * read(p.times + at));
        write((p.activated != nullptr ? p.activated : p.result) + at, f.value(x));
        if (p.activated != nullptr) write(p.result + at, f.slope(x));
      });
    }
  });
}

}  // namespace
}  // namespace zoo::kernels::ZOO_KERNELS_FOR
