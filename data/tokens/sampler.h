#pragma once

/// @file
/// Use:
///
///     const zoo::RandomBlockSampler sampler(dataset.train, /*block_size=*/64, /*batch_size=*/12,
///                                           {.seed = 1});
///     std::vector<std::int64_t> inputs(12 * 64), targets(12 * 64);
///     sampler.fill(/*step=*/0, inputs, targets);

#include <cstdint>
#include <span>

#include "data/random/random_stream.h"
#include "data/tokens/token_file.h"

namespace zoo {

/// Random blocks of a token sequence for language modelling, drawn with replacement. The batch of a step is a
/// pure function of (seed, stream, step): a resumed run needs no replay, and threads may fill different steps
/// at once.
class RandomBlockSampler {
 public:
  /// Throws Error if there are fewer than block_size + 1 tokens or a size is not positive.
  RandomBlockSampler(TokenFile tokens, std::int64_t block_size, std::int64_t batch_size, SamplerSeed seed);

  std::int64_t block_size() const { return block_size_; }
  std::int64_t batch_size() const { return batch_size_; }

  /// The position where row `row` of the batch begins: uniform in [0, tokens - block_size - 1]. step in [0,
  /// 2^48).
  std::size_t offset(std::int64_t step, std::int64_t row) const;

  /// inputs and targets [B, T], row-major: targets[b, t] is the token after inputs[b, t].
  /// Throws std::invalid_argument if the size of a span is not B * T or step is out of range.
  void fill(std::int64_t step, std::span<std::int64_t> inputs, std::span<std::int64_t> targets) const;

  /// The same for the rows [first_row, first_row + inputs.size() / T) only.
  void fill_rows(std::int64_t step, std::int64_t first_row, std::span<std::int64_t> inputs,
                 std::span<std::int64_t> targets) const;

 private:
  TokenFile tokens_;
  std::int64_t block_size_, batch_size_;
  SamplerSeed seed_;
};

}  // namespace zoo
