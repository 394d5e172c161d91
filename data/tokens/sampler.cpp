#include "data/tokens/sampler.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "data/base/error.h"
#include "data/base/sizes.h"

namespace zoo {
namespace {

// Batches sorted by length together: enough for equal lengths, few enough to differ in every epoch.
constexpr std::int64_t kBatchesInBucket = 32;

// Streams that choose the text of a row begin here, away from those of orders and masks.
constexpr std::uint32_t kMixtureStreams = 32;

// Orders examples by these lengths, the longest first.
auto longer_in(const std::vector<std::int64_t>& lengths) {
  return [&](std::int64_t a, std::int64_t b) {
    return lengths[static_cast<std::size_t>(a)] > lengths[static_cast<std::size_t>(b)];
  };
}

}  // namespace

RandomBlockSampler::RandomBlockSampler(std::vector<TokenShare> mixture, std::int64_t block_size,
                                       std::int64_t batch_size, SamplerSeed seed)
    : mixture_(std::move(mixture)), block_size_(block_size), batch_size_(batch_size), seed_(seed) {
  if (block_size < 1) throw Error("block_size must be at least 1, found ", block_size);
  if (batch_size < 1) throw Error("batch_size must be at least 1, found ", batch_size);
  for (const auto& [tokens, weight] : mixture_) {
    // Not block_size + 1 <= size, which could overflow.
    if (static_cast<std::size_t>(block_size) >= tokens.size())
      throw Error(tokens.name(), " has ", tokens.size(), " tokens; block_size ", block_size,
                  " needs at least ", static_cast<std::uint64_t>(block_size) + 1);
    if (!(weight > 0) || !std::isfinite(weight))
      throw Error(tokens.name(), ": a weight must be a number above 0, found ", weight);
  }
}

const TokenFile& RandomBlockSampler::text_of(std::int64_t step, std::int64_t row) const {
  if (mixture_.size() == 1) return mixture_[0].tokens;
  double all = 0;
  for (const TokenShare& share : mixture_) all += share.weight;
  const RandomStream::Position place{seed_.stream + kMixtureStreams, step, static_cast<std::uint32_t>(row)};
  double left = RandomStream(seed_.seed, place).uniform() * all;
  for (const TokenShare& share : mixture_)
    if ((left -= share.weight) < 0) return share.tokens;
  return mixture_.back().tokens;  // where the sum was rounded
}

std::size_t RandomBlockSampler::offset(std::int64_t step, std::int64_t row) const {
  if (step < 0 || step >= std::int64_t{1} << 48)
    throw std::invalid_argument("the sampler's step is out of range");
  const PhiloxCounter counter = {static_cast<std::uint32_t>(row), seed_.stream,
                                 static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32)};
  return uniform_below(text_of(step, row).size() - static_cast<std::size_t>(block_size_), counter,
                       philox_key(seed_.seed));
}

void RandomBlockSampler::fill_rows(std::int64_t step, std::int64_t first_row, std::span<std::int64_t> inputs,
                                   std::span<std::int64_t> targets) const {
  const auto width = static_cast<std::size_t>(block_size_);
  std::vector<std::int64_t> ids(width + 1);
  const bool fits = inputs.size() == targets.size() && inputs.size() % width == 0;
  if (!fits) throw std::invalid_argument("the sampler's spans must hold whole rows of block_size tokens");
  for (std::size_t row = 0; row < inputs.size() / width; ++row) {
    const std::int64_t in_batch = first_row + static_cast<std::int64_t>(row);
    text_of(step, in_batch).copy(offset(step, in_batch), ids);
    std::ranges::copy(std::span(ids).first(width), inputs.subspan(row * width).begin());
    std::ranges::copy(std::span(ids).last(width), targets.subspan(row * width).begin());
  }
}

EpochSampler::EpochSampler(std::vector<std::int64_t> lengths, std::int64_t batch_size, SamplerSeed seed)
    : lengths_(std::move(lengths)), batch_size_(batch_size), seed_(seed) {
  if (batch_size < 1) throw Error("batch_size must be at least 1, found ", batch_size);
  if (lengths_.empty()) throw Error("there is no example to train on");
}

std::int64_t EpochSampler::batches_per_epoch() const {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(lengths_.size()) / batch_size_);
}

std::vector<std::int64_t> EpochSampler::batch(std::int64_t step) {
  const std::int64_t epoch = step / batches_per_epoch(), within = step % batches_per_epoch();
  if (epoch != epoch_) arrange(epoch);
  const auto begin = order_.begin() + within * batch_size_;
  return {begin, begin + batch_size_};
}

void EpochSampler::arrange(std::int64_t epoch) {
  RandomStream random(seed_.seed, {.stream = seed_.stream, .step = epoch});
  const auto shuffled = random.permutation(static_cast<std::int64_t>(lengths_.size()));
  const std::int64_t batches = batches_per_epoch();
  std::vector<std::int64_t> picked(static_cast<std::size_t>(batches * batch_size_));
  for (std::size_t i = 0; i < picked.size(); ++i) picked[i] = shuffled[i % shuffled.size()];
  for (std::int64_t first = 0; first < batches; first += kBatchesInBucket) {
    const std::int64_t end = std::min(batches, first + kBatchesInBucket);
    std::stable_sort(picked.begin() + first * batch_size_, picked.begin() + end * batch_size_,
                     longer_in(lengths_));
  }
  order_.clear();
  for (const std::int64_t batch : random.permutation(batches)) {
    const auto begin = picked.begin() + batch * batch_size_;
    order_.insert(order_.end(), begin, begin + batch_size_);
  }
  epoch_ = epoch;
}

std::vector<std::vector<std::int64_t>> batches_by_length(const std::vector<std::int64_t>& lengths,
                                                         std::int64_t batch_size) {
  std::vector<std::int64_t> order = indices_below<std::int64_t>(lengths.size());
  std::ranges::stable_sort(order, longer_in(lengths));
  std::vector<std::vector<std::int64_t>> batches;
  for (auto begin = order.begin(); begin != order.end();) {
    const auto end = begin + std::min<std::ptrdiff_t>(batch_size, order.end() - begin);
    batches.emplace_back(begin, end);
    begin = end;
  }
  return batches;
}

std::vector<std::vector<std::int64_t>> evaluation_order(const std::vector<std::int64_t>& lengths,
                                                        std::int64_t batch_size, SamplerSeed seed) {
  auto batches = batches_by_length(lengths, batch_size);
  RandomStream random(seed.seed, {.stream = seed.stream});
  std::vector<std::vector<std::int64_t>> shuffled;
  for (const std::int64_t i : random.permutation(static_cast<std::int64_t>(batches.size())))
    shuffled.push_back(std::move(batches[static_cast<std::size_t>(i)]));
  return shuffled;
}

}  // namespace zoo
