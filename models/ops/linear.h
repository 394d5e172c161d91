#pragma once

#include "models/ops/residual.h"

namespace zoo::ops {

/// y = x W^T + b with its residual: x [*, in], weight [out, in], bias [out] or undefined. Returns [*, out].
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  const Residual& residual = {});

}  // namespace zoo::ops
