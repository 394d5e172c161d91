#pragma once

#include <cstdint>
#include <vector>

#include "data/random/random_stream.h"

namespace zoo {

/// Batches of examples: within an epoch each example comes once, in an order that is a pure function of
/// (seed, stream, epoch), and examples of like length come together, so that little is padded. What does not
/// fill a batch waits for another epoch; fewer examples than a batch are taken several times.
class EpochSampler {
 public:
  /// `lengths` of the examples; neither may be empty. Throws Error if batch_size is not positive.
  EpochSampler(std::vector<std::int64_t> lengths, std::int64_t batch_size, SamplerSeed seed);

  std::int64_t batches_per_epoch() const;

  /// The numbers of the batch_size examples of step `step`, counted over all epochs.
  std::vector<std::int64_t> batch(std::int64_t step);

 private:
  void arrange(std::int64_t epoch);

  std::vector<std::int64_t> lengths_;
  std::int64_t batch_size_;
  SamplerSeed seed_;
  std::int64_t epoch_ = -1;          // whose order this is:
  std::vector<std::int64_t> order_;  // batches_per_epoch() * batch_size
};

/// The numbers of all examples in batches of like length, the longest first; the last batch may be smaller.
std::vector<std::vector<std::int64_t>> batches_by_length(const std::vector<std::int64_t>& lengths,
                                                         std::int64_t batch_size);

}  // namespace zoo
