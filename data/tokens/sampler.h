#pragma once

/// @file
/// Use:
///
///     zoo::RandomBlockSampler blocks(dataset.train, /*block_size=*/64, /*batch_size=*/12, {.seed = 1});
///     std::vector<std::int64_t> inputs(12 * 64), targets(12 * 64);
///     blocks.fill_rows(/*step=*/0, /*first_row=*/0, inputs, targets);
///     zoo::EpochSampler examples(lengths, /*batch_size=*/16, {.seed = 1});
///     const std::vector<std::int64_t> batch = examples.batch(/*step=*/0);

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "data/random/random_stream.h"
#include "data/tokens/token_file.h"

namespace zoo {

/// A text of a mixture.
struct TokenShare {
  TokenFile tokens;
  double weight = 1;  // above 0; shares are in proportion to it
};

/// Random blocks of a token sequence, drawn with replacement; of a mixture each row's text is drawn first.
/// The batch of a step is a pure function of (seed, stream, step); threads may fill different steps.
class RandomBlockSampler {
 public:
  /// Throws Error if a text has fewer than block_size + 1 tokens or a size or weight is not positive.
  RandomBlockSampler(std::vector<TokenShare> mixture, std::int64_t block_size, std::int64_t batch_size,
                     SamplerSeed seed);
  RandomBlockSampler(TokenFile tokens, std::int64_t block_size, std::int64_t batch_size, SamplerSeed seed)
      : RandomBlockSampler({TokenShare{std::move(tokens)}}, block_size, batch_size, seed) {}

  std::int64_t block_size() const { return block_size_; }
  std::int64_t batch_size() const { return batch_size_; }

  /// Where row `row` of the batch begins in its text, uniform in [0, tokens - block_size - 1]; step < 2^48.
  std::size_t offset(std::int64_t step, std::int64_t row) const;

  /// The rows [first_row, first_row + inputs.size() / T) of the batch, row-major: targets[b, t] is the token
  /// after inputs[b, t]. Throws std::invalid_argument if a span is no whole number of rows, or not the same
  /// as the other, or step is out of range.
  void fill_rows(std::int64_t step, std::int64_t first_row, std::span<std::int64_t> inputs,
                 std::span<std::int64_t> targets) const;

 private:
  const TokenFile& text_of(std::int64_t step, std::int64_t row) const;

  std::vector<TokenShare> mixture_;
  std::int64_t block_size_, batch_size_;
  SamplerSeed seed_;
};

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

/// All examples in batches of similar length, the longest first; the last batch may be smaller.
std::vector<std::vector<std::int64_t>> batches_by_length(const std::vector<std::int64_t>& lengths,
                                                         std::int64_t batch_size);

/// The same batches in random order: an evaluation may use only the first few.
std::vector<std::vector<std::int64_t>> evaluation_order(const std::vector<std::int64_t>& lengths,
                                                        std::int64_t batch_size, SamplerSeed seed);

}  // namespace zoo
