#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace zoo {

/// Data parallelism: the processes train one module together, each on its own rows. All ranks call the same
/// functions in the same order.
class Ranks {
 public:
  virtual ~Ranks() = default;

  virtual std::int64_t rank() const = 0;
  virtual std::int64_t size() const = 0;

  /// The sum over all ranks.
  virtual double sum(double value) = 0;

  /// Copies rank `from`'s tensor, a contiguous one in the CPU's memory, into those of all others.
  virtual void broadcast(const at::Tensor& tensor, std::int64_t from) = 0;

  /// Call before the backward pass of `loss`. With `last` the gradients become the mean over the ranks during
  /// that pass; otherwise they stay local and accumulate.
  virtual void prepare_backward(const at::Tensor& loss, bool last) = 0;
};

}  // namespace zoo
