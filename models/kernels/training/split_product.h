#pragma once

#include "models/kernels/training/matrix_product.h"

// Products of float32 matrices by AMX (amx.h), which multiplies bfloat16 16 times as fast as other
// instructions multiply float32. Idea: a float32 is the sum of three bfloat16 of 8 bits each, its high,
// middle and low part. Of the nine products of two such sums, six are added in float32; the other three are
// smaller than the rounding of a float32 (Henry, Tang and Heinecke, "Leveraging the bfloat16 Artificial
// Intelligence Datatype For Higher-Precision Computations", 2019). Numbers from 3.39e38 on, and
// infinite ones, give NaN; denormal ones count as zero, and below 1e-33 digits are lost.
namespace zoo::kernels {

/// Rows of a region should begin at multiples of this; its columns, too.
constexpr std::size_t kSplitSide = 32;

/// Packing the rows of a factor costs as much as this many rows or columns of the result.
constexpr std::size_t kSplitPacking = 100;

/// True for products that are faster so. Depends on the whole product, not on a thread's region: the same
/// bits with any number of threads.
constexpr bool is_for_split(const MatrixProduct& p) {
  const auto fits = [](const Matrix& m) { return m.row == 1 || m.column == 1; };
  return p.rows >= kSplitSide && p.columns >= kSplitSide && p.depth >= kSplitSide && fits(p.a) && fits(p.b);
}

}  // namespace zoo::kernels
