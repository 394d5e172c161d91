#include "models/ops/vocabulary_loss.h"

#include <ATen/ops/cross_entropy_loss.h>

#include "models/kernels/training/linear.h"
#include "models/kernels/training/vocabulary_loss.h"
#include "models/ops/linear.h"

namespace zoo::ops {

at::Tensor vocabulary_loss(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                           const at::Tensor& targets, double smoothing) {
  if (kernels::has_fast_linear(x, weight))
    return kernels::vocabulary_loss(x, weight, bias, targets, smoothing);
  return at::cross_entropy_loss(linear(x, weight, bias).to(at::kFloat), targets, {}, at::Reduction::Mean,
                                /*ignore_index=*/-100, smoothing);
}

}  // namespace zoo::ops
