#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace zoo {

/// The processes that train one module together, each on its own rows: data parallelism. Each calls the same
/// functions in the same order.
class Ranks {
 public:
  virtual ~Ranks() = default;

  virtual std::int64_t rank() const = 0;
  virtual std::int64_t size() const = 0;

  /// The sum over all ranks.
  virtual double sum(double value) = 0;

  /// Before the backward pass of `loss`. With `last` the gradients become the mean over the ranks while that
  /// pass runs; without it they stay this rank's own, to be added to.
  virtual void prepare_backward(const at::Tensor& loss, bool last) = 0;
};

}  // namespace zoo
