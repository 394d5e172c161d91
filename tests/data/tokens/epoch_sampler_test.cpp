#include <algorithm>
#include <set>

#include "data/base/error.h"
#include "data/tokens/sampler.h"
#include "tests/support/catch.h"

namespace {

std::vector<std::int64_t> lengths(std::int64_t count) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < count; ++i) lengths.push_back(i * 7 % 31);
  return lengths;
}

}  // namespace

TEST_CASE("An epoch has each example once, in another order than the next") {
  zoo::EpochSampler sampler(lengths(60), 5, {1, 0});
  REQUIRE(sampler.batches_per_epoch() == 12);
  std::vector<std::int64_t> orders[2];
  for (std::int64_t step = 0; step < 24; ++step) {
    for (const std::int64_t i : sampler.batch(step)) orders[step / 12].push_back(i);
  }
  for (const auto& order : orders) CHECK(std::set<std::int64_t>(order.begin(), order.end()).size() == 60);
  CHECK(orders[0] != orders[1]);
  CHECK(sampler.batch(3) == std::vector<std::int64_t>(orders[0].begin() + 15, orders[0].begin() + 20));
}

TEST_CASE("A batch has examples of similar length") {
  const auto all = lengths(310);  // ten of each length
  zoo::EpochSampler sampler(all, 10, {1, 0});
  for (std::int64_t step = 0; step < sampler.batches_per_epoch(); ++step) {
    std::int64_t shortest = 31, longest = 0;
    for (const std::int64_t i : sampler.batch(step)) {
      shortest = std::min(shortest, all[static_cast<std::size_t>(i)]);
      longest = std::max(longest, all[static_cast<std::size_t>(i)]);
    }
    CHECK(longest - shortest <= 1);
  }
}

TEST_CASE("Examples that do not fill a batch wait, and fewer examples than a batch repeat") {
  zoo::EpochSampler left_over(lengths(13), 5, {1, 0});
  CHECK(left_over.batches_per_epoch() == 2);
  zoo::EpochSampler few(lengths(2), 5, {1, 0});
  CHECK(few.batches_per_epoch() == 1);
  const auto batch = few.batch(0);
  CHECK(batch.size() == 5);
  CHECK(std::count(batch.begin(), batch.end(), 0) >= 2);
  CHECK_THROWS_AS(zoo::EpochSampler({}, 5, {1, 0}), zoo::Error);
}

TEST_CASE("Batches by length hold each example once, the last ones less than a batch") {
  const auto batches = zoo::batches_by_length({3, 9, 1, 5, 7}, 2);
  CHECK(batches == std::vector<std::vector<std::int64_t>>{{1, 4}, {3, 0}, {2}});
}
