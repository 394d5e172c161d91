#pragma once

#include <cstddef>

namespace zoo::kernels {

/// Rows [columns] of a LayerNorm or an RMSNorm (layers/norm.h).
struct NormRows {
  std::size_t columns;
  bool centred;  // LayerNorm; RMSNorm takes no mean off
  float eps;
  const float* x;
  const float* weight;          // [columns]
  const float* bias = nullptr;  // [columns]; may be absent
  float* result = nullptr;      // may be absent in the backward pass
  float* statistics = nullptr;  // [rows, 2]: the mean, and 1 over the deviation; the forward pass writes them
};

/// result of the rows [first, last).
void normalize(const NormRows& rows, std::size_t first, std::size_t last);

/// Gradients of the rows' result, and of what they come from.
struct NormGradients {
  const float* result;
  const float* passed = nullptr;  // of x by another way, added to x's; may be absent
  float* x = nullptr;             // may be absent
  float* weight = nullptr;        // [columns], to which the rows' sums are added; may be absent
  float* bias = nullptr;          // the same
};

void normalize_backward(const NormRows& rows, const NormGradients& gradients, std::size_t first,
                        std::size_t last);

}  // namespace zoo::kernels
