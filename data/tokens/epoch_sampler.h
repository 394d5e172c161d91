#pragma once

/// @file
/// Use:
///
///     zoo::EpochSampler sampler(/*lengths=*/{5, 9, 7, 4}, /*batch_size=*/2, {.seed = 1});
///     const std::vector<std::int64_t> examples = sampler.batch(/*step=*/0);

#include <cstdint>
#include <vector>

#include "data/random/random_stream.h"

namespace zoo {

/// Batches of examples. Each example is used once per epoch, in an order that is a pure function of (seed,
/// stream, epoch). Batches have examples of similar length, so that there is little padding. Examples that do
/// not fill a batch wait for another epoch; if there are fewer examples than a batch, they repeat.
class EpochSampler {
 public:
  /// `lengths` of the examples, not empty. Throws Error if batch_size is not positive.
  EpochSampler(std::vector<std::int64_t> lengths, std::int64_t batch_size, SamplerSeed seed);

  std::int64_t batches_per_epoch() const;

  /// The indices of the batch_size examples of a step, counted over all epochs.
  std::vector<std::int64_t> batch(std::int64_t step);

 private:
  void arrange(std::int64_t epoch);

  std::vector<std::int64_t> lengths_;
  std::int64_t batch_size_;
  SamplerSeed seed_;
  std::int64_t epoch_ = -1;          // the epoch of order_
  std::vector<std::int64_t> order_;  // batches_per_epoch() * batch_size
};

/// The indices of all examples in batches of similar length, the longest first; the last batch may be
/// smaller.
std::vector<std::vector<std::int64_t>> batches_by_length(const std::vector<std::int64_t>& lengths,
                                                         std::int64_t batch_size);

/// The same batches in random order: an evaluation may use only the first few.
std::vector<std::vector<std::int64_t>> evaluation_order(const std::vector<std::int64_t>& lengths,
                                                        std::int64_t batch_size, SamplerSeed seed);

}  // namespace zoo
