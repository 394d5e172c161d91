#include "data/tokens/sampler.h"

#include <stdexcept>
#include <utility>

#include "data/base/error.h"

namespace zoo {

RandomBlockSampler::RandomBlockSampler(TokenFile tokens, std::int64_t block_size, std::int64_t batch_size,
                                       SamplerSeed seed)
    : tokens_(std::move(tokens)), block_size_(block_size), batch_size_(batch_size), seed_(seed) {
  if (block_size < 1) throw Error("block_size must be at least 1, found ", block_size);
  if (batch_size < 1) throw Error("batch_size must be at least 1, found ", batch_size);
  // Not block_size + 1 <= size, which could overflow.
  if (static_cast<std::size_t>(block_size) >= tokens_.size()) {
    throw Error(tokens_.name(), " has ", tokens_.size(), " tokens; block_size ", block_size,
                " needs at least ", static_cast<std::uint64_t>(block_size) + 1);
  }
}

std::size_t RandomBlockSampler::offset(std::int64_t step, std::int64_t row) const {
  if (step < 0 || step >= std::int64_t{1} << 48)
    throw std::invalid_argument("the sampler's step is out of range");
  const PhiloxCounter counter = {static_cast<std::uint32_t>(row), seed_.stream,
                                 static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32)};
  return uniform_below(tokens_.size() - static_cast<std::size_t>(block_size_), counter,
                       philox_key(seed_.seed));
}

void RandomBlockSampler::fill(std::int64_t step, std::span<std::int64_t> inputs,
                              std::span<std::int64_t> targets) const {
  const auto width = static_cast<std::size_t>(block_size_), rows = static_cast<std::size_t>(batch_size_);
  const bool fits = inputs.size() % width == 0 && inputs.size() / width == rows;
  if (!fits) throw std::invalid_argument("the sampler's spans must hold batch_size * block_size tokens");
  fill_rows(step, 0, inputs, targets);
}

void RandomBlockSampler::fill_rows(std::int64_t step, std::int64_t first_row, std::span<std::int64_t> inputs,
                                   std::span<std::int64_t> targets) const {
  const auto width = static_cast<std::size_t>(block_size_);
  const bool fits = inputs.size() == targets.size() && inputs.size() % width == 0;
  if (!fits) throw std::invalid_argument("the sampler's spans must hold whole rows of block_size tokens");
  for (std::size_t row = 0; row < inputs.size() / width; ++row) {
    const std::size_t begin = offset(step, first_row + static_cast<std::int64_t>(row));
    tokens_.copy(begin, inputs.subspan(row * width, width));
    tokens_.copy(begin + 1, targets.subspan(row * width, width));
  }
}

}  // namespace zoo
