#pragma once

/// @file
/// Use:
///
///     zoo::Shards shards(module, weights, ranks, zoo::Shard::kWeights);
///     shards.begin();
///     loss.backward();
///     shards.end(/*last=*/true);  // now the owners of the weights have the mean gradients

#include <deque>
#include <functional>
#include <vector>

#include <c10/util/intrusive_ptr.h>
#include <torch/nn/module.h>

#include "apps/training/parallel/ranks.h"
#include "models/layers/recompute.h"

namespace torch::autograd {
struct Node;
}

namespace zoo {

/// Leaves each gradient to the rank that owns its weight (ZeRO-2: Rajbhandari et al., 2020): it goes there
/// as soon as the backward pass has it. With Shard::kWeights, the blocks' weights lie with their owners, too
/// (Zhao et al., 2023): all ranks get a block's before its forward pass and before its recomputation. Those
/// outside of blocks stay on each rank, and so do frozen ones.
class Shards final : public PartWeights {
 public:
  struct Weight {
    at::Tensor tensor;
    std::int64_t owner;
  };
  /// `weights`: all that are trained, the same on each rank, on the CPU. With kWeights recomputes the
  /// module's blocks, and throws UnfitField if it has none. All ranks compute the same blocks from then on.
  Shards(torch::nn::Module& module, std::vector<Weight> weights, Ranks& ranks, Shard shard);
  ~Shards() override;
  Shards(const Shards&) = delete;
  Shards& operator=(const Shards&) = delete;

  /// By weight, true if it lies with its owner alone.
  const std::vector<bool>& apart() const { return apart_; }
  bool divides_weights() const { return part_weights() == this; }

  /// Call before and after each backward pass. The gradients add up until the last one of an update, after
  /// which the owners have their mean over the ranks; a weight that no rank used has none.
  void begin();
  void end(bool last);

  void take(const std::vector<at::Tensor>& weights) override;
  void give_back(const std::vector<at::Tensor>& weights) noexcept override;

  /// While it lives, rank 0 has all weights. All ranks make one at the same time; null: they have them.
  class Whole {
   public:
    explicit Whole(Shards* shards);
    ~Whole();
    Whole(const Whole&) = delete;
    Whole& operator=(const Whole&) = delete;

   private:
    Shards* shards_;
  };

 private:
  struct Sum {
    std::size_t weight;
    at::Tensor gradient;
    std::function<void()> wait;
  };
  bool owns(std::size_t i) const { return weights_[i].owner == ranks_.rank(); }
  void find_apart(const torch::nn::Module& module);
  void find_order(const torch::nn::Module& module);
  void send_ready();
  void finish_one();
  void get(std::size_t i);
  void free(std::size_t i) noexcept;
  std::vector<std::size_t> apart_of(const std::vector<at::Tensor>& weights) const;

  std::vector<Weight> weights_;
  Ranks& ranks_;
  std::vector<bool> apart_;
  std::vector<std::pair<c10::intrusive_ptr<torch::autograd::Node>, std::uintptr_t>> hooks_;
  // Sent in one order on all ranks, from the last to the first.
  std::vector<std::size_t> order_;
  bool in_pass_ = false;
  std::vector<bool> ready_;
  std::size_t left_ = 0;  // not sent yet
  std::deque<Sum> sums_;  // on their way
  std::vector<at::Tensor> means_;
  at::Tensor uses_;  // by weight
};

}  // namespace zoo
