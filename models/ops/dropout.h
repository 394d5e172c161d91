#pragma once

#include <ATen/core/Tensor.h>

namespace zoo {

/// In training, sets elements to zero with probability `rate` in [0, 1] and divides the others by 1 - rate
/// (Srivastava et al., 2014), like at::dropout; otherwise returns x. float32 on a CPU with AVX-512 uses a
/// counter-based generator on all threads, seeded by one number of LibTorch's; the rest uses LibTorch.
at::Tensor dropout(const at::Tensor& x, double rate, bool training);

}  // namespace zoo
