#pragma once

#include <cstddef>

namespace zoo::kernels {

/// Rows [columns] of a LayerNorm or an RMSNorm (ops/norm.h).
struct NormRows {
  std::size_t columns;
  bool centred;  // LayerNorm; RMSNorm subtracts no mean
  float eps;
  const float* x;
  const float* weight;          // [columns]
  const float* bias = nullptr;  // [columns]; may be absent
  float* result = nullptr;      // may be absent in the backward pass
  float* statistics = nullptr;  // [rows, 2]: mean and 1 / deviation; written by the forward pass
};

/// Normalises the rows [first, last).
void normalize(const NormRows& rows, std::size_t first, std::size_t last);

/// Gradients of the rows' result and of its inputs.
struct NormGradients {
  const float* result;
  const float* passed = nullptr;  // gradient of x along another path, added; may be absent
  float* x = nullptr;             // may be absent
  float* weight = nullptr;        // [columns], accumulates over rows; may be absent
  float* bias = nullptr;          // likewise
};

void normalize_backward(const NormRows& rows, const NormGradients& gradients, std::size_t first,
                        std::size_t last);

}  // namespace zoo::kernels
