#pragma once

#include "models/kernels/training/linear.h"
#include "models/ops/activation.h"
#include "models/ops/residual.h"

namespace zoo::ops {

/// In nn.Linear's layout; a gated unit's `up` holds gate and value, [2F, C].
using kernels::FeedForwardWeights;

/// Position-wise feed-forward network (Vaswani et al., 2017, section 3.3) with its residual:
/// down(dropout(activation(up(x)))). x [*, C] to [*, C].
at::Tensor feed_forward(const at::Tensor& x, const FeedForwardWeights& weights, Activation activation,
                        double dropout, const Residual& residual = {});

}  // namespace zoo::ops
