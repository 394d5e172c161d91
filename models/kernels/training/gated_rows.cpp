#include "models/kernels/training/gated_rows.h"

#include "models/kernels/activations.h"

namespace zoo::kernels::ZOO_KERNELS_FOR {

void gate(const GatedRows& rows, float* result, std::size_t first, std::size_t last) {
  const std::size_t columns = rows.columns;
  with_function(rows.f, [&](auto f) {
    for (std::size_t row = first; row < last; ++row) {
      const float *gates = rows.x + 2 * row * columns, *values = gates + columns;
      for_each_vector(columns, [&](std::size_t i, const auto& read, const auto& write) {
        write(result + row * columns + i, f.value(read(gates + i)) * read(values + i));
      });
    }
  });
}

void gate_backward(const GatedRows& rows, const float* result_gradient, float* gradient, std::size_t first,
                   std::size_t last) {
  const std::size_t columns = rows.columns;
  with_function(rows.f, [&](auto f) {
    for (std::size_t row = first; row < last; ++row) {
      const std::size_t begin = 2 * row * columns;
      for_each_vector(columns, [&](std::size_t i, const auto& read, const auto& write) {
        const Lanes g = read(rows.x + begin + i), passed = read(result_gradient + row * columns + i);
        write(gradient + begin + i, passed * read(rows.x + begin + columns + i) * f.slope(g));
        write(gradient + begin + columns + i, passed * f.value(g));
      });
    }
  });
}

}  // namespace zoo::kernels::ZOO_KERNELS_FOR
