#pragma once

#include <memory>

#include <torch/nn/module.h>

#include "apps/training/parallel/ranks.h"

namespace zoo {

/// Belonging to the processes that `mpirun -np N` has started. One in a process, made before all else that
/// can fail: while it lives, an exception that ends this process ends the others, too.
class ParallelSession {
 public:
  /// Throws Error if mpirun has started several processes and the zoo was built without MPI.
  ParallelSession();
  ~ParallelSession();
  ParallelSession(const ParallelSession&) = delete;
  ParallelSession& operator=(const ParallelSession&) = delete;

  std::int64_t rank() const { return rank_; }
  std::int64_t size() const { return size_; }

  /// The ranks for training this module, which begins with rank 0's weights on each; null where the process
  /// is alone. Gradients are averaged by c10d's Reducer, in buckets while the backward pass still runs.
  std::unique_ptr<Ranks> ranks_for(torch::nn::Module& module) const;

 private:
  std::int64_t rank_ = 0, size_ = 1;
};

}  // namespace zoo
