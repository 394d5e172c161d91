#pragma once

#include <ATen/core/Tensor.h>

#include "models/kernels/pointwise.h"

namespace zoo::kernels {

/// True if gated_unit() supports this input: float32 in the memory of a CPU that has the kernels.
bool has_fast_gated_unit(const at::Tensor& x);

/// f(gate) * value with gradients: x [*, 2F] has gate and value side by side, the result is [*, F].
/// Differentiable once.
at::Tensor gated_unit(const at::Tensor& x, Pointwise f);

}  // namespace zoo::kernels
