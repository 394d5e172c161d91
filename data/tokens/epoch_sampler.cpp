#include "data/tokens/epoch_sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "data/base/error.h"

namespace zoo {
namespace {

// Batches that are sorted by length together: enough for batches of equal length, few enough to mix
// differently in every epoch.
constexpr std::int64_t kBatchesInBucket = 32;

}  // namespace

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

  const auto longer = [&](std::int64_t a, std::int64_t b) {
    return lengths_[static_cast<std::size_t>(a)] > lengths_[static_cast<std::size_t>(b)];
  };
  for (std::int64_t first = 0; first < batches; first += kBatchesInBucket) {
    const std::int64_t end = std::min(batches, first + kBatchesInBucket);
    std::stable_sort(picked.begin() + first * batch_size_, picked.begin() + end * batch_size_, longer);
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
  std::vector<std::int64_t> order(lengths.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return lengths[static_cast<std::size_t>(a)] > lengths[static_cast<std::size_t>(b)];
  });
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
