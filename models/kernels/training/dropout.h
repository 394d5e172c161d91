#pragma once

#include <ATen/core/Tensor.h>

namespace zoo::kernels {

/// True if dropout() supports this: float32 in memory of a CPU that has the kernels, a rate in (0, 1).
bool has_fast_dropout(const at::Tensor& x, double rate);

/// Dropout with gradients. A counter-based generator on all threads draws the mask, seeded by one number of
/// LibTorch's generator. Backward draws the same mask again instead of storing it.
at::Tensor dropout(const at::Tensor& x, double rate);

}  // namespace zoo::kernels
