#include "models/ops/dropout.h"

#include <ATen/ops/dropout.h>

#include "models/kernels/training/dropout.h"

namespace zoo::ops {

at::Tensor dropout(const at::Tensor& x, double rate) {
  if (rate == 0) return x;
  return kernels::has_fast_dropout(x, rate) ? kernels::dropout(x, rate) : at::dropout(x, rate, true);
}

}  // namespace zoo::ops
