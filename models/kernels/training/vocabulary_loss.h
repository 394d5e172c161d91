#pragma once

#include <ATen/core/Tensor.h>

namespace zoo::kernels {

/// Mean of -log softmax(x W^T + b)[target] over rows x [N, C]: weight [V, C], bias [V] or undefined, targets
/// [N] int64 in [0, V). All classes share `smoothing`, in [0, 1), of each target's weight. Idea: forward
/// already computes the gradients, chunk by chunk of rows, so that the logits [N, V] never exist at once.
/// float32; for inputs that linear() supports. Differentiable once.
at::Tensor vocabulary_loss(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                           const at::Tensor& targets, double smoothing);

}  // namespace zoo::kernels
