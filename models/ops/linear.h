#pragma once

#include <ATen/core/Tensor.h>

#include "models/kernels/training/linear.h"
#include "models/ops/activation.h"

namespace zoo::ops {

/// Sets elements to zero with probability `rate` in [0, 1] and divides the others by 1 - rate (Srivastava et
/// al., 2014); a rate of 0, outside training, returns x. The fast path's masks differ from at::dropout's.
at::Tensor dropout(const at::Tensor& x, double rate);

/// Residual connection around a sublayer that ends in a projection y: add_to + dropout(y) (Vaswani et al.,
/// 2017, section 5.4).
struct Residual {
  at::Tensor add_to;     // of y's shape; undefined: nothing is added
  double dropout = 0.0;  // in [0, 1); 0 outside training

  at::Tensor operator()(const at::Tensor& y) const {
    const at::Tensor dropped = ops::dropout(y, dropout);
    return add_to.defined() ? add_to + dropped : dropped;
  }

  /// The same around product(start), which adds to `start` unless it is undefined. Without dropout the
  /// product starts from add_to, which saves a pass.
  template <class Product> at::Tensor around(const Product& product) const {
    const bool starts = dropout == 0 && add_to.defined() && add_to.scalar_type() == at::kFloat;
    return starts ? product(add_to) : (*this)(product(at::Tensor()));
  }
};

/// y = x W^T + b with its residual: x [*, in], weight [out, in], bias [out] or undefined. Returns [*, out].
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  const Residual& residual = {});

/// In nn.Linear's layout; a gated unit's `up` holds gate and value, [2F, C].
using kernels::FeedForwardWeights;

/// Position-wise feed-forward network (Vaswani et al., 2017, section 3.3) with its residual:
/// down(dropout(activation(up(x)))). x [*, C] to [*, C].
at::Tensor feed_forward(const at::Tensor& x, const FeedForwardWeights& weights, Activation activation,
                        double dropout, const Residual& residual = {});

/// Mean of -log softmax(x W^T + b)[target] in float32: rows x [N, C], weight [V, C], bias [V] or undefined,
/// targets [N] in [0, V). All classes share `smoothing`, in [0, 1), of each target's weight. The fast path
/// never holds the logits of all rows.
at::Tensor vocabulary_loss(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                           const at::Tensor& targets, double smoothing);

}  // namespace zoo::ops
