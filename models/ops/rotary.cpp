#include "models/ops/rotary.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include "models/kernels/training/row_functions.h"

namespace zoo::ops {

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  if (kernels::has_fast_rotation(x, cos)) return kernels::rotate(x, cos, sin);
  const auto halves = x.chunk(2, -1);
  const at::Tensor quarter_turned = at::cat({-halves[1], halves[0]}, -1);
  return x * cos.to(x.scalar_type()) + quarter_turned * sin.to(x.scalar_type());
}

}  // namespace zoo::ops
