#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/scalar_tensor.h>

namespace zoo {

/// What ranks divide among themselves besides the rows; each includes those before it.
enum class Shard { kNone, kOptimizer, kGradients, kWeights };

/// In the order of Shard.
inline const std::vector<std::string> kShardNames{"none", "optimizer", "gradients", "weights"};

/// Data parallelism: the processes train one module, each on different rows. All ranks call the same
/// functions in the same order.
class Ranks {
 public:
  virtual ~Ranks() = default;

  virtual std::int64_t rank() const = 0;
  virtual std::int64_t size() const = 0;

  /// The sum over all ranks, in place. A number to which the others add zeros keeps its bits.
  virtual void add(const at::Tensor& tensor) = 0;
  double sum(double value) {
    const at::Tensor one = at::scalar_tensor(value, at::kDouble);
    add(one);
    return one.item<double>();
  }

  /// The mean over all ranks, in place. Tensors of one type.
  virtual void average(const std::vector<at::Tensor>& tensors) = 0;

  /// True if `value` was true on any rank in the call before this one: nobody waits for this call's answer.
  virtual bool any_before(bool value) = 0;

  /// Copies rank `from`'s tensor, contiguous in CPU memory, to all other ranks.
  virtual void broadcast(const at::Tensor& tensor, std::int64_t from) = 0;

  /// Begins to add up the ranks' tensors, contiguous in CPU memory, in that of rank `to`; the result waits
  /// for the end. Those of other ranks hold anything then.
  virtual std::function<void()> begin_sum(const at::Tensor& tensor, std::int64_t to) = 0;

  /// Call before the backward pass of `loss`. With `last` the gradients become the mean over the ranks during
  /// that pass; otherwise they stay local and accumulate.
  virtual void prepare_backward(const at::Tensor& loss, bool last) = 0;

  /// Of each rank, the seconds since the last call in which its backward passes had ended and the gradients
  /// were not yet summed. The slowest rank waits least.
  virtual std::vector<double> take_waits() = 0;
};

}  // namespace zoo
