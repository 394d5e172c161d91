#pragma once

#include <type_traits>

#include "models/kernels/dot.h"

// A tile: R rows times V vectors of a product, summed in registers, so that each number loaded is used R or V
// times. Products differ only in the dot (dot.h) and in the layout of their factors.
namespace zoo::kernels {

/// Vectors of the widest tile with R rows.
template <std::size_t R>
constexpr std::size_t kWidestTile = R * 4 <= kTileVectors   ? 4
                                    : R * 2 <= kTileVectors ? 2
                                                            : 1;

/// Factors of a tile; strides are in bytes. Word k of row r is at rows + r * row + k * word. The vectors of
/// columns that it multiplies are side by side at columns + k * depth.
struct TileFactors {
  const void* rows;
  std::size_t row, word;
  const void* columns;
  std::size_t depth;
  std::size_t words;
};

/// sums[r][v] += the dot products of row r and vector v of the columns. Prefetches columns this many bytes
/// ahead.
template <class Dot, std::size_t Prefetch = 0, std::size_t R, std::size_t V>
ZOO_INLINE void add_products(const TileFactors& factors, typename Dot::Sums (&sums)[R][V]) {
  const auto* rows = static_cast<const std::byte*>(factors.rows);
  const auto* columns = static_cast<const std::byte*>(factors.columns);
  // A local copy without aliases stays in registers.
  typename Dot::Sums here[R][V];
  for (std::size_t r = 0; r < R; ++r)
    for (std::size_t v = 0; v < V; ++v) here[r][v] = sums[r][v];
  for (std::size_t k = 0; k < factors.words; ++k, rows += factors.word, columns += factors.depth) {
    decltype(Dot::load(columns)) read[V];
    for (std::size_t v = 0; v < V; ++v) {
      read[v] = Dot::load(columns + v * Dot::kBytes);
      if constexpr (Prefetch > 0) __builtin_prefetch(columns + v * Dot::kBytes + Prefetch);
    }
    for (std::size_t r = 0; r < R; ++r)
      for (std::size_t v = 0; v < V; ++v) here[r][v] = Dot::add(here[r][v], rows + r * factors.row, read[v]);
  }
  for (std::size_t r = 0; r < R; ++r)
    for (std::size_t v = 0; v < V; ++v) sums[r][v] = here[r][v];
}

/// Selects the first `columns` elements of V vectors of a row; only the last vector may be partial.
template <std::size_t V> struct ColumnMask {
  bool whole;
  std::size_t tail;

  explicit ZOO_INLINE ColumnMask(std::size_t columns)
      : whole(columns >= V * kLanes), tail((columns - 1) % kLanes + 1) {}
  ZOO_INLINE Lanes read(const float* from, std::size_t v) const {
    return whole || v + 1 < V ? load(from + v * kLanes) : load_some(from + v * kLanes, tail);
  }
  ZOO_INLINE void write(float* to, std::size_t v, const Lanes& lanes) const {
    if (whole || v + 1 < V) {
      store(to + v * kLanes, lanes);
    } else {
      store_some(to + v * kLanes, lanes, tail);
    }
  }
};

/// Start of a tile's sums: a bias in each row; nullptr: zeros.
template <std::size_t R, std::size_t V>
ZOO_INLINE void begin_sums(const ColumnMask<V>& mask, const float* bias, Lanes (&sums)[R][V]) {
  for (std::size_t r = 0; r < R; ++r)
    for (std::size_t v = 0; v < V; ++v) sums[r][v] = bias != nullptr ? mask.read(bias, v) : Lanes{};
}

/// Reads a tile from rows of a matrix; adds the first `rows` of them to a tile; writes them.
template <std::size_t R, std::size_t V>
ZOO_INLINE void read_rows(const ColumnMask<V>& mask, const float* from, std::size_t stride,
                          Lanes (&tile)[R][V]) {
  for (std::size_t r = 0; r < R; ++r)
    for (std::size_t v = 0; v < V; ++v) tile[r][v] = mask.read(from + r * stride, v);
}

template <std::size_t R, std::size_t V>
ZOO_INLINE void add_rows(const ColumnMask<V>& mask, const float* from, std::size_t stride,
                         Lanes (&tile)[R][V], std::size_t rows = R) {
  for (std::size_t r = 0; r < R && r < rows; ++r)
    for (std::size_t v = 0; v < V; ++v) tile[r][v] += mask.read(from + r * stride, v);
}

template <std::size_t R, std::size_t V>
ZOO_INLINE void write_rows(const ColumnMask<V>& mask, float* to, std::size_t stride,
                           const Lanes (&tile)[R][V], std::size_t rows = R) {
  for (std::size_t r = 0; r < R && r < rows; ++r)
    for (std::size_t v = 0; v < V; ++v) mask.write(to + r * stride, v, tile[r][v]);
}

/// Calls f(R as a constant, row) for tiles of Tallest rows of [first, last) and the remaining rows; with
/// Least = 2, for an even number of rows.
template <std::size_t Tallest, std::size_t Least = 1, class F>
ZOO_INLINE void for_rows(std::size_t first, std::size_t last, const F& f) {
  std::size_t row = first;
  for (; row + Tallest <= last; row += Tallest) f(std::integral_constant<std::size_t, Tallest>{}, row);
  if constexpr (Tallest > Least) for_rows<(Tallest > 4 ? 4 : Tallest / 2), Least>(row, last, f);
}

/// Calls f(V as a constant, vector) for parts of the vectors [first, last), each up to a tile's width.
template <std::size_t Widest, class F>
ZOO_INLINE void for_vectors(std::size_t first, std::size_t last, const F& f) {
  std::size_t v = first;
  for (; v + Widest <= last; v += Widest) f(std::integral_constant<std::size_t, Widest>{}, v);
  if constexpr (Widest > 1) for_vectors<Widest / 2>(v, last, f);
}

}  // namespace zoo::kernels
