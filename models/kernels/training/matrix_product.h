#pragma once

#include <cstddef>

#include "models/kernels/pointwise.h"

namespace zoo::kernels {

/// Element (i, j) is at data[i * row + j * column].
struct Matrix {
  const float* data;
  std::size_t row, column;
};

/// result = a b + bias, float32. Idea: up to 512 rows of kPanelColumns columns of b are copied, unless they
/// are contiguous already or few rows of a need them, and stay in the L2 cache with a block of a's rows,
/// whose tiles (tile.h) pass over them (Goto and van de Geijn, "Anatomy of high-performance matrix
/// multiplication", 2008). The order of summation does not depend on the number of threads.
struct MatrixProduct {
  std::size_t rows, columns, depth;
  Matrix a;       // [rows, depth]
  Matrix b;       // [depth, columns]
  float* result;  // [rows, columns], row i at result + i * result_row
  std::size_t result_row;
  const float* bias = nullptr;    // [columns]
  bool adds = false;              // result += a b, without a bias
  const float* addend = nullptr;  // in result's layout: result = a b + bias + addend

  Pointwise pointwise = Pointwise::kNone;
  // Receives pointwise(result), in result's layout; result becomes the slope. If absent, result receives it.
  float* activated = nullptr;
  const float* times = nullptr;  // in result's layout: result *= times
  // The result is symmetric: a split product does not write the tiles below the diagonal.
  bool upper_only = false;
};

/// Part of a result that a thread computes.
struct Region {
  std::size_t first_row, last_row, first_column, last_column;
};

/// Rows and columns of a region should begin at multiples of these.
constexpr std::size_t kTileRows = 6, kPanelColumns = 64;

/// True if multiply() splits the numbers of this product (split_product.h).
bool is_split(const MatrixProduct& product);

void multiply(const MatrixProduct& product, const Region& region);

}  // namespace zoo::kernels
