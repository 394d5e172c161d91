#pragma once

#include <ATen/core/Tensor.h>

namespace zoo::ops {

/// Mean of -log softmax(x W^T + b)[target] in float32: rows x [N, C], weight [V, C], bias [V] or undefined,
/// targets [N] in [0, V). All classes share `smoothing`, in [0, 1), of each target's weight. The fast path
/// never holds the logits of all rows.
at::Tensor vocabulary_loss(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                           const at::Tensor& targets, double smoothing);

}  // namespace zoo::ops
