#pragma once

#include <ATen/core/Tensor.h>

namespace zoo::ops {

/// Sets elements to zero with probability `rate` in [0, 1] and divides the others by 1 - rate (Srivastava et
/// al., 2014); a rate of 0, outside training, returns x. The fast path's masks differ from at::dropout's.
at::Tensor dropout(const at::Tensor& x, double rate);

}  // namespace zoo::ops
