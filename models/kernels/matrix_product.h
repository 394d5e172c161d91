#pragma once

#include <cstddef>

#include "models/kernels/pointwise.h"

namespace zoo::kernels {

/// Element (i, j) lies at data[i * row + j * column].
struct Matrix {
  const float* data;
  std::size_t row, column;
};

/// result = a b + bias, float32. Each element is summed in one order, whatever the number of threads.
struct MatrixProduct {
  std::size_t rows, columns, depth;
  Matrix a;       // [rows, depth]
  Matrix b;       // [depth, columns]
  float* result;  // [rows, columns], row i at result + i * result_row
  std::size_t result_row;
  const float* bias = nullptr;    // [columns]
  bool adds = false;              // result += a b, without a bias
  const float* addend = nullptr;  // laid out as result: result = a b + bias + addend

  Pointwise pointwise = Pointwise::kNone;
  // Takes pointwise(result), laid out as result, which becomes the slope there; absent, result takes it.
  float* activated = nullptr;
  const float* times = nullptr;  // result *= these, laid out as result
};

/// The part of a result that a thread computes.
struct Region {
  std::size_t first_row, last_row, first_column, last_column;
};

/// Rows and columns of a region should begin at multiples of these.
constexpr std::size_t kTileRows = 6, kPanelColumns = 64;

/// Needs a CPU with AVX-512 where the kernel was compiled for it.
void multiply(const MatrixProduct& product, const Region& region);

}  // namespace zoo::kernels
