#pragma once

#include <cstddef>

#include "models/kernels/pointwise.h"

namespace zoo::kernels {

/// Rows of a gated linear unit (Shazeer, 2020): f(gate) * value, side by side in a row of x [rows, 2
/// columns].
struct GatedRows {
  std::size_t columns;
  Pointwise f;
  const float* x;
};

/// result [rows, columns] of the rows [first, last).
void gate(const GatedRows& rows, float* result, std::size_t first, std::size_t last);

/// Their gradient [rows, 2 columns] from the result's.
void gate_backward(const GatedRows& rows, const float* result_gradient, float* gradient, std::size_t first,
                   std::size_t last);

}  // namespace zoo::kernels
