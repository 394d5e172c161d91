#pragma once

#include <ATen/core/Tensor.h>

namespace zoo::ops {

/// Rotary positions (Su et al., 2021): turns the pairs (x[i], x[i + D / 2]) of heads [B, H, T, D] by the
/// angles of their tokens, whose cosines and sines are [T, D] or [B, 1, T, D], with equal halves.
at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

}  // namespace zoo::ops
