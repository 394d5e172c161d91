#pragma once

#include <cstddef>
#include <cstdint>

#include "models/kernels/pointwise.h"

// Products of float32 matrices, rounded to bfloat16 and summed in float32 (mixed precision, Micikevicius et
// al., 2018; for bfloat16 Kalamkar et al., 2019). Idea: factors are packed in pairs first, and one pass over
// a factor writes each layout that later products need.
namespace zoo::kernels {

/// Two bfloat16, the earlier in the lower half: the input of one dot product step.
using Pair = std::uint32_t;

/// Packed matrices are zero-padded to full panels, and an odd row to a pair.
constexpr std::size_t kPairPanel = 64;

constexpr std::size_t pairs_of(std::size_t size) { return (size + 1) / 2; }
constexpr std::size_t panels_of(std::size_t columns) { return (columns + kPairPanel - 1) / kPairPanel; }

/// The two layouts of a matrix [rows, columns], in pairs. By rows, two columns are a pair: [2 *
/// pairs_of(rows), panel * 32]. By panels, two rows are a pair: [panel, pairs_of(rows), 64].
constexpr std::size_t pairs_by_rows(std::size_t rows, std::size_t columns) {
  return 2 * pairs_of(rows) * panels_of(columns) * kPairPanel / 2;
}
constexpr std::size_t pairs_by_panels(std::size_t rows, std::size_t columns) {
  return pairs_of(rows) * panels_of(columns) * kPairPanel;
}

struct PairPacking {
  const float* data;  // [rows, columns], contiguous
  std::size_t rows, columns;
  Pair* by_rows = nullptr;    // may be absent
  Pair* by_panels = nullptr;  // may be absent
  float* sums = nullptr;      // [columns], sums over the rows before rounding; may be absent
};

/// Packs the panels [first, last).
void pack_pairs(const PairPacking& packing, std::size_t first, std::size_t last);

/// Packs panels [first, last) of panels_of(rows) of the transpose [columns, rows].
void pack_transposed_pairs(const PairPacking& packing, std::size_t first, std::size_t last);

/// Computes sums[j] of a matrix by panels, for the columns of panels [first, last).
void sum_pairs(const Pair* by_panels, std::size_t pairs, float* sums, std::size_t columns, std::size_t first,
               std::size_t last);

/// A factor whose pair p of row r is at data[r / 64 * panel + r % 64 * row + p * pair].
struct PairFactor {
  const Pair* data;
  std::size_t row, pair, panel;
};

/// Factor for a matrix [rows, columns] by rows: its pairs are pairs of columns.
PairFactor factor_by_rows(const Pair* data, std::size_t columns);

/// Factor for the transpose of a matrix [rows, columns] by panels: [columns, rows].
PairFactor factor_by_panels(const Pair* data, std::size_t rows);

/// a b + bias. The order of summation does not depend on the number of threads. Writes `result`, or packed
/// layouts of f(a b + bias) or of a b times a matrix.
struct PairProduct {
  std::size_t rows, columns, pairs;
  PairFactor a;   // [rows, 2 pairs]
  const Pair* b;  // [2 pairs, columns] by panels
  const float* bias = nullptr;

  float* result = nullptr;        // [rows, columns]
  bool adds = false;              // result += a b, without a bias
  const float* addend = nullptr;  // [rows, columns]: result = a b + bias + addend

  Pair* by_rows = nullptr;
  Pair* by_panels = nullptr;
  Pointwise pointwise = Pointwise::kNone;
  Pair* slope = nullptr;        // receives f's slope at a b + bias, by rows
  const Pair* times = nullptr;  // by rows: factors of a b
};

/// Rows and panels of the result; rows begin and end at multiples of 2.
struct PairRegion {
  std::size_t first_row, last_row, first_panel, last_panel;
};

/// Rows of a region should begin at multiples of this, or of an even fraction of a panel if `a` is by panels.
constexpr std::size_t kPairTileRows = 6;

/// Needs a CPU with AVX-512 BF16 if the kernel was compiled for it.
void multiply(const PairProduct& product, const PairRegion& region);

}  // namespace zoo::kernels
