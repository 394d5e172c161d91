#pragma once

#include <cstring>

#include "models/kernels/vector.h"

// Products of one head's matrices, only for attention kernels: everything is inlined (kernels/vector.h).
namespace zoo::head_product {

using kernels::kLanes;
using kernels::Lanes;

constexpr std::size_t kRows = 4;  // of a tile: four vectors of columns fill half of the registers

ZOO_INLINE constexpr std::size_t padded(std::size_t size) {
  return (size + kLanes - 1) / kLanes * kLanes;
}

/// Element k of row i is at data[i * row + k * column].
template <class Element>
struct Factor {
  const Element* data;
  std::size_t row, column;
};

/// Range of k that contributes to some rows, and number of result columns needed there: skips known zeros.
struct Extent {
  std::size_t begin, end, columns;
};

/// c[r, 0 … 16 V) = sum over k of a[r, k] * b[k, …], for kRows rows. Dot has an Element, and
/// load(const Element*) and add(sums, Element, loaded) for 16 columns.
template <class Dot, std::size_t V, class Element = typename Dot::Element>
ZOO_INLINE void tile(const Factor<Element>& a, const Element* b, std::size_t b_row, float* c,
                     std::size_t c_row, const Extent& extent) {
  Lanes sums[kRows][V] = {};
  for (std::size_t k = extent.begin; k < extent.end; ++k) {
    decltype(Dot::load(b)) columns[V];
    for (std::size_t v = 0; v < V; ++v) columns[v] = Dot::load(b + k * b_row + v * kLanes);
    for (std::size_t r = 0; r < kRows; ++r) {
      const Element factor = a.data[r * a.row + k * a.column];
      for (std::size_t v = 0; v < V; ++v) sums[r][v] = Dot::add(sums[r][v], factor, columns[v]);
    }
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t v = 0; v < V; ++v) kernels::store(c + r * c_row + v * kLanes, sums[r][v]);
  }
}

/// c = a b for kRows rows.
template <class Dot, class Element = typename Dot::Element>
ZOO_INLINE void multiply(const Factor<Element>& a, const Element* b, std::size_t b_row, float* c,
                         std::size_t c_row, const Extent& extent) {
  std::size_t j = 0;
  for (; j + 4 * kLanes <= extent.columns; j += 4 * kLanes)
    tile<Dot, 4>(a, b + j, b_row, c + j, c_row, extent);
  for (; j + 2 * kLanes <= extent.columns; j += 2 * kLanes)
    tile<Dot, 2>(a, b + j, b_row, c + j, c_row, extent);
  for (; j < extent.columns; j += kLanes) tile<Dot, 1>(a, b + j, b_row, c + j, c_row, extent);
}

/// Destination rows [length, width] of results.
struct Place {
  float* data;
  std::size_t stride, length, width;
};

/// Sets rows i … i + kRows - 1 of the place, as many as exist, to a b; uses `memory` [kRows, padded(width)]
/// where they fill no tile.
template <class Dot, class Element = typename Dot::Element>
ZOO_INLINE void multiply_into(const Place& to, std::size_t i, const Factor<Element>& a, const Element* b,
                              std::size_t b_row, float* memory, std::size_t begin, std::size_t end) {
  const std::size_t columns = padded(to.width);
  float* rows = to.data + i * to.stride;
  if (i + kRows <= to.length && columns == to.width)
    return multiply<Dot>(a, b, b_row, rows, to.stride, {begin, end, columns});
  multiply<Dot>(a, b, b_row, memory, columns, {begin, end, columns});
  for (std::size_t r = 0; r < kRows && i + r < to.length; ++r)
    std::memcpy(rows + r * to.stride, memory + r * columns, to.width * sizeof(float));
}

/// Keeps x up to the row's own position and sets later columns to `hidden`.
ZOO_INLINE Lanes causal(const Lanes& x, std::size_t row, std::size_t column, float hidden) {
  const kernels::IntegerLanes position =
      kernels::IntegerLanes{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} +
      (static_cast<int>(column) - static_cast<int>(row));
  return position > 0 ? kernels::all(hidden) : x;
}

}  // namespace zoo::head_product
