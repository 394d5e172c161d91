#include "models/kernels/training/rows.h"

#include <cmath>

#include "models/kernels/activations.h"
#include "models/kernels/vector.h"

namespace zoo::kernels::ZOO_KERNELS_FOR {
namespace {

struct Statistics {
  float mean, scale;
};

ZOO_INLINE Statistics statistics_of(const NormRows& rows, const float* x) {
  const auto count = static_cast<float>(rows.columns);
  Statistics s{0, 0};
  if (rows.centred) {
    Lanes sums = {};
    for_each_vector(rows.columns, [&](std::size_t j, const auto& read, const auto&) { sums += read(x + j); });
    s.mean = sum_of(sums) / count;
  }
  Lanes squares = {};
  for_each_vector(rows.columns, [&](std::size_t j, const auto& read, const auto&) {
    float apart[kLanes];
    store(apart, read(x + j) - s.mean);
    const Lanes counted = read(apart);  // lanes past the end are no longer zero
    squares += counted * counted;
  });
  s.scale = 1.0F / std::sqrt(sum_of(squares) / count + rows.eps);
  return s;
}

}  // namespace

void normalize(const NormRows& rows, std::size_t first, std::size_t last) {
  for (std::size_t row = first; row < last; ++row) {
    const float* x = rows.x + row * rows.columns;
    float* result = rows.result + row * rows.columns;
    const Statistics s = statistics_of(rows, x);
    for_each_vector(rows.columns, [&](std::size_t j, const auto& read, const auto& write) {
      Lanes y = (read(x + j) - s.mean) * s.scale * read(rows.weight + j);
      if (rows.bias != nullptr) y += read(rows.bias + j);
      write(result + j, y);
    });
    if (rows.statistics == nullptr) continue;
    rows.statistics[2 * row] = s.mean;
    rows.statistics[2 * row + 1] = s.scale;
  }
}

void normalize_backward(const NormRows& rows, const NormGradients& gradients, std::size_t first,
                        std::size_t last) {
  const auto count = static_cast<float>(rows.columns);
  for (std::size_t row = first; row < last; ++row) {
    const std::size_t begin = row * rows.columns;
    const float *x = rows.x + begin, *of_result = gradients.result + begin;
    const float mean = rows.statistics[2 * row], scale = rows.statistics[2 * row + 1];
    Lanes sums = {}, products = {};
    for_each_vector(rows.columns, [&](std::size_t j, const auto& read, const auto& write) {
      const Lanes g = read(of_result + j), y = (read(x + j) - mean) * scale,
                  weighed = g * read(rows.weight + j);
      sums += weighed;
      products += weighed * y;
      if (gradients.weight != nullptr) write(gradients.weight + j, read(gradients.weight + j) + g * y);
      if (gradients.bias != nullptr) write(gradients.bias + j, read(gradients.bias + j) + g);
    });
    if (gradients.x == nullptr) continue;
    const float level = rows.centred ? sum_of(sums) / count : 0.0F, slope = sum_of(products) / count;
    for_each_vector(rows.columns, [&](std::size_t j, const auto& read, const auto& write) {
      const Lanes y = (read(x + j) - mean) * scale;
      Lanes g = (read(of_result + j) * read(rows.weight + j) - level - y * slope) * scale;
      if (gradients.passed != nullptr) g += read(gradients.passed + begin + j);
      write(gradients.x + begin + j, g);
    });
  }
}

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
