#pragma once

/// @file
/// Use:
///
///     const zoo::ParallelSession session;  // mpirun -np 2 …
///     const auto ranks = session.ranks_for(*model);
///     zoo::TrainerOptions options{.max_iters = 500};
///     options.ranks = ranks.get();

#include <memory>

#include <torch/nn/module.h>

#include "apps/training/parallel/ranks.h"

namespace zoo {

/// MPI session of the processes that `mpirun -np N` starts. Create one per process, before anything else that
/// can fail: while it exists, an exception that ends this process ends the others, too.
class ParallelSession {
 public:
  /// Throws Error if mpirun has started several processes but the zoo was built without MPI, or if another
  /// launcher has.
  ParallelSession();
  ~ParallelSession();
  ParallelSession(const ParallelSession&) = delete;
  ParallelSession& operator=(const ParallelSession&) = delete;

  std::int64_t rank() const { return rank_; }
  std::int64_t size() const { return size_; }

  /// Ranks for training this module, starting from rank 0's weights on every rank; null for a single process.
  /// c10d's Reducer averages gradients in buckets during the backward pass.
  std::unique_ptr<Ranks> ranks_for(torch::nn::Module& module) const;

 private:
  std::int64_t rank_ = 0, size_ = 1;
};

}  // namespace zoo
