#include "models/kernels/training/norm_rows.h"

#include <cmath>

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

}  // namespace zoo::kernels::ZOO_KERNELS_FOR
