#pragma once

#include "models/ops/dropout.h"

namespace zoo::ops {

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
  template <class Product>
  at::Tensor around(const Product& product) const {
    const bool starts = dropout == 0 && add_to.defined() && add_to.scalar_type() == at::kFloat;
    return starts ? product(add_to) : (*this)(product(at::Tensor()));
  }
};

}  // namespace zoo::ops
