#include "data/tokens/sampler.h"

#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>

#include "tests/data/support.h"

using Catch::Contains;
using zoo::RandomBlockSampler;
using zoo::test::message_of;

namespace {

// The id at position i is i + 100: an id tells its position.
zoo::TokenFile counting(std::size_t size) {
  zoo::TokenIds ids(size);
  std::iota(ids.begin(), ids.end(), 100);
  return {ids, "the training split"};
}

struct Batch {
  std::vector<std::int64_t> inputs, targets;
  bool operator==(const Batch&) const = default;
};

Batch batch_of(const RandomBlockSampler& sampler, std::int64_t step) {
  const auto size = static_cast<std::size_t>(sampler.batch_size() * sampler.block_size());
  Batch batch{std::vector<std::int64_t>(size), std::vector<std::int64_t>(size)};
  sampler.fill_rows(step, 0, batch.inputs, batch.targets);
  return batch;
}

}  // namespace

TEST_CASE("rows are contiguous blocks and targets the tokens that follow") {
  const RandomBlockSampler sampler(counting(1000), 5, 3, {.seed = 1});
  const Batch batch = batch_of(sampler, 7);
  for (std::size_t row = 0; row < 3; ++row) {
    const auto first = static_cast<std::int64_t>(sampler.offset(7, static_cast<std::int64_t>(row))) + 100;
    for (std::size_t t = 0; t < 5; ++t) {
      CHECK(batch.inputs[row * 5 + t] == first + static_cast<std::int64_t>(t));
      CHECK(batch.targets[row * 5 + t] == first + static_cast<std::int64_t>(t) + 1);
    }
  }
}

TEST_CASE("a batch is a pure function of seed, stream and step") {
  const RandomBlockSampler sampler(counting(100000), 8, 4, {.seed = 1337, .stream = 2});
  const Batch seventh = batch_of(sampler, 7);
  for (const std::int64_t step : {0, 1, 100, 7}) batch_of(sampler, step);
  CHECK(batch_of(sampler, 7) == seventh);
  CHECK(batch_of(RandomBlockSampler(counting(100000), 8, 4, {.seed = 1337, .stream = 2}), 7) == seventh);
  CHECK(batch_of(sampler, 8) != seventh);
  CHECK(batch_of(sampler, 7 + (std::int64_t{1} << 32)) != seventh);
  CHECK(batch_of(RandomBlockSampler(counting(100000), 8, 4, {.seed = 1338, .stream = 2}), 7) != seventh);
  CHECK(batch_of(RandomBlockSampler(counting(100000), 8, 4, {1337 + (std::uint64_t{1} << 32), 2}), 7) !=
        seventh);
  CHECK(batch_of(RandomBlockSampler(counting(100000), 8, 4, {.seed = 1337, .stream = 3}), 7) != seventh);
}

TEST_CASE("the batches of a seed are the same on every platform") {
  // floor(x * 2^16 / 2^64) for Random123's answer to counter 0 and key 0, whose second word is 0xe169c58d.
  const RandomBlockSampler sampler(counting(65536 + 4), 4, 1, {});
  CHECK(sampler.offset(0, 0) == 0xe169);
}

TEST_CASE("rows, steps and streams do not share their offsets") {
  std::set<std::size_t> offsets;
  for (std::uint32_t stream = 0; stream < 4; ++stream) {
    const RandomBlockSampler sampler(counting(1 << 24), 4, 4, {.seed = 5, .stream = stream});
    for (std::int64_t step = 0; step < 4; ++step) {
      for (std::int64_t row = 0; row < 4; ++row) offsets.insert(sampler.offset(step, row));
    }
  }
  CHECK(offsets.size() == 64);  // out of 2^24: a collision has probability 1 / 8,000
}

TEST_CASE("every position from the first to the last is reached, and none beyond") {
  const RandomBlockSampler sampler(counting(8), 5, 16, {.seed = 3});  // offsets 0, 1, 2
  std::set<std::int64_t> firsts;
  std::int64_t last_target = 0;
  for (std::int64_t step = 0; step < 10; ++step) {
    const Batch batch = batch_of(sampler, step);
    for (std::size_t row = 0; row < 16; ++row) firsts.insert(batch.inputs[row * 5]);
    last_target = std::max(last_target, *std::max_element(batch.targets.begin(), batch.targets.end()));
  }
  CHECK(firsts == std::set<std::int64_t>{100, 101, 102});
  CHECK(last_target == 107);
}

TEST_CASE("offsets are uniform by the chi-square test") {
  constexpr std::size_t kCells = 100;
  constexpr std::int64_t kSteps = 2000, kRows = 50;
  const RandomBlockSampler sampler(counting(kCells + 10), 10, kRows, {.seed = 1337});
  std::vector<double> counts(kCells);
  for (std::int64_t step = 0; step < kSteps; ++step) {
    for (std::int64_t row = 0; row < kRows; ++row) ++counts.at(sampler.offset(step, row));
  }
  const double expected = static_cast<double>(kSteps * kRows) / kCells;
  double chi_square = 0;
  for (const double count : counts) chi_square += (count - expected) * (count - expected) / expected;
  // 99 degrees of freedom: the 0.1 % and 99.9 % points.
  CHECK(chi_square > 60.3);
  CHECK(chi_square < 148.2);
}

TEST_CASE("rows of a mixture come whole from one text, in proportion to the weights") {
  const zoo::TokenFile sevens(zoo::TokenIds(50, 7), "the other text");
  const RandomBlockSampler sampler({{counting(1000), 3}, {sevens, 1}}, 8, 100, {.seed = 1337});
  const RandomBlockSampler turned({{counting(1000), 0.3}, {sevens, 0.1}}, 8, 100, {.seed = 1337});
  double others = 0;
  for (std::int64_t step = 0; step < 40; ++step) {
    const Batch batch = batch_of(sampler, step);
    CHECK(batch == batch_of(turned, step));
    for (std::size_t row = 0; row < 800; row += 8) {
      others += batch.inputs[row] == 7 ? 1 : 0;
      for (std::size_t i = row; i < row + 8; ++i)
        CHECK(batch.targets[i] == (batch.inputs[row] == 7 ? 7 : batch.inputs[i] + 1));
    }
  }
  // A quarter of 4,000 rows: 1,000, within four standard deviations of 27.4.
  CHECK(others > 890);
  CHECK(others < 1110);
  for (const double weight : {0.0, -1.0, std::numeric_limits<double>::infinity()})
    CHECK_THAT(message_of([&] {
                 RandomBlockSampler({{counting(99), 1}, {sevens, weight}}, 8, 1, {});
               }),
               Contains("the other text: a weight must be a number above 0"));
  CHECK_THAT(message_of([&] {
               RandomBlockSampler({{counting(99), 1}, {sevens, 1}}, 50, 1, {});
             }),
             Contains("the other text has 50 tokens"));
}

TEST_CASE("a split that is too short is an error with both numbers") {
  CHECK_NOTHROW(RandomBlockSampler(counting(65), 64, 1, {}));
  CHECK_THAT(message_of([] { RandomBlockSampler sampler(counting(64), 64, 1, {}); }),
             Contains("the training split has 64 tokens; block_size 64 needs at least 65"));
  CHECK_THAT(message_of([] { RandomBlockSampler sampler(counting(0), 1, 1, {}); }), Contains("has 0 tokens"));
  const auto largest = std::numeric_limits<std::int64_t>::max();
  CHECK_THAT(message_of([=] { RandomBlockSampler sampler(counting(9), largest, 1, {}); }),
             Contains("has 9 tokens"));
}

TEST_CASE("sizes that are not positive, and spans of another size, are refused") {
  CHECK_THAT(message_of([] { RandomBlockSampler sampler(counting(9), 0, 1, {}); }), Contains("block_size"));
  CHECK_THAT(message_of([] { RandomBlockSampler sampler(counting(9), 2, -1, {}); }), Contains("batch_size"));
  const RandomBlockSampler sampler(counting(9), 2, 3, {});
  std::vector<std::int64_t> six(6), five(5), four(4);
  CHECK_THROWS_AS(sampler.fill_rows(0, 0, six, four), std::invalid_argument);
  CHECK_THROWS_AS(sampler.fill_rows(0, 0, five, five), std::invalid_argument);
  CHECK_THROWS_AS(sampler.fill_rows(-1, 0, six, six), std::invalid_argument);
  CHECK_THROWS_AS(sampler.fill_rows(std::int64_t{1} << 48, 0, six, six), std::invalid_argument);
}
