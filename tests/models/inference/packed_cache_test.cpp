#include "models/inference/packed_cache.h"

#include <algorithm>
#include <random>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "models/inference/packed_decoder.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;
using inference::CacheShape;
using inference::PackedCache;
using kernels::WeightType;
using zoo::test::relative_error;

namespace {

constexpr std::size_t kHeadDim = 64, kCapacity = 6400, kWindow = 100;

// Pages in memory among a head's keys, which stand before its values.
std::size_t pages_of_keys(const PackedCache& cache, std::size_t layer, std::size_t slot, std::size_t head) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const kernels::HeadCache at = cache.head(layer, slot, head);
  const auto begin = (reinterpret_cast<std::uintptr_t>(at.keys) + page - 1) / page * page;
  const std::size_t pages = (reinterpret_cast<std::uintptr_t>(at.values) - begin) / page;
  std::vector<unsigned char> in_memory(pages);
  REQUIRE(mincore(reinterpret_cast<void*>(begin), pages * page, in_memory.data()) == 0);
  return static_cast<std::size_t>(
      std::count_if(in_memory.begin(), in_memory.end(), [](unsigned char flags) { return flags & 1; }));
}

CacheShape shape_of(std::size_t slots) {
  return {.layers = 2,
          .slots = slots,
          .heads = 2,
          .head_dim = kHeadDim,
          .capacity = kCapacity,
          .type = WeightType::kFloat32,
          .window = kWindow,
          .has_window = {false, true}};
}

// Writes positions [first, last) of all layers and heads of a slot; each number of a key is its position.
void write(PackedCache& cache, std::size_t slot, std::size_t first, std::size_t last) {
  for (std::size_t position = first; position < last; ++position) {
    const std::vector<float> numbers(kHeadDim, static_cast<float>(position));
    for (std::size_t layer = 0; layer < 2; ++layer)
      for (std::size_t head = 0; head < 2; ++head)
        kernels::inference_kernels().append(WeightType::kFloat32, cache.head(layer, slot, head), kHeadDim,
                                            position, numbers.data(), numbers.data());
  }
}

// First number of a position's key: panels hold a dimension of kPanelOutputs positions after another.
float key_at(const PackedCache& cache, std::size_t layer, std::size_t slot, std::size_t position) {
  const auto* panel = reinterpret_cast<const float*>(cache.head(layer, slot, 1).keys) +
                      position / kernels::kPanelOutputs * kernels::kPanelOutputs * kHeadDim;
  return panel[position % kernels::kPanelOutputs];
}

TokenIds list(const at::Tensor& ids) {
  const auto* data = ids.const_data_ptr<std::int64_t>();
  return {data, data + ids.numel()};
}

// Three layers, two of which see 24 tokens back.
TransformerConfig windowed_config() {
  TransformerConfig config = test::small_config();
  config.max_positions = 2000;
  config.sliding_window = 24;
  config.window_layers = {true, false, true};
  return config;
}

at::Tensor last_logits(Model& model, const TokenIds& tokens) {
  const at::NoGradGuard no_grad;
  return model.forward({.input_ids = at::tensor(tokens, at::kLong).unsqueeze(0)}).logits[0][-1];
}

}  // namespace

TEST_CASE("A cache whose size fits no memory is refused with the numbers") {
  for (const std::size_t capacity : {std::size_t{1} << 40, std::size_t{1} << 56, std::size_t{1} << 62}) {
    CacheShape shape = shape_of(1);
    shape.capacity = capacity;
    CHECK_THROWS_WITH(PackedCache(shape),
                      Catch::Contains("1 rows of " + std::to_string(capacity) + " tokens"));
  }
}

TEST_CASE("Layers with a window keep the memory of their window, the others all") {
  PackedCache cache(shape_of(1));
  std::size_t most = 0;
  for (std::size_t length = 0; length < kCapacity; length += 64) {
    write(cache, 0, length, length + 64);
    cache.forget(0, length + 64);
    most = std::max(most, pages_of_keys(cache, 1, 0, 1));
  }
  const std::size_t bytes = kHeadDim * sizeof(float), page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  CHECK(pages_of_keys(cache, 0, 0, 1) >= kCapacity * bytes / page - 1);
  CHECK(most <= (kWindow + 2 * PackedCache::kSpare + 2 * 64) * bytes / page + 2);
  CHECK(cache.serves(0, kCapacity - PackedCache::kSpare));
  CHECK(cache.serves(0, 0));
  CHECK_FALSE(cache.serves(0, kWindow));
  for (std::size_t position = kCapacity - kWindow - PackedCache::kSpare; position < kCapacity; ++position)
    REQUIRE(key_at(cache, 1, 0, position) == static_cast<float>(position));
}

TEST_CASE("A copy of a slot has what its window shows, whatever either has forgotten") {
  PackedCache cache(shape_of(3));
  write(cache, 0, 0, 3000);
  write(cache, 1, 0, 5000);
  cache.forget(1, 5000);
  // The slots' first 3,000 positions are alike, but the second has lost them in one layer.
  cache.copy(cache, 0, 1, 3000, 3000);
  CHECK(cache.serves(1, 500));
  for (const std::size_t position : {0U, 499U, 2999U})
    CHECK(key_at(cache, 1, 1, position) == float(position));

  cache.forget(1, 3000);
  cache.copy(cache, 1, 2, 0, 3000);
  CHECK_FALSE(cache.serves(2, 500));
  CHECK(cache.serves(2, 3000));
  CHECK(key_at(cache, 0, 2, 1) == 1);
  for (std::size_t position = 2900; position < 3000; ++position)
    REQUIRE(key_at(cache, 1, 2, position) == static_cast<float>(position));
  CHECK(pages_of_keys(cache, 1, 2, 0) < pages_of_keys(cache, 0, 2, 0) / 4);

  cache.restart(2);
  CHECK(cache.serves(2, 500));
}

TEST_CASE("Rows whose windows forget are as each would be alone, however they part and go back") {
  const auto model = test::random_gpt(windowed_config(), 7);
  const auto packed = pack(*model, {});
  const auto session = packed->begin(2, 1800);
  std::mt19937 chance(11);
  const auto below = [&](std::size_t end) { return static_cast<std::int64_t>(chance() % end); };
  std::vector<TokenIds> rows{list(test::random_ids(model->config(), 1, 1100, 1)),
                             list(test::random_ids(model->config(), 1, 700, 2))};
  session->read(rows);
  std::size_t lost = 0;
  for (int step = 0; step < 24; ++step) {
    std::vector<std::int64_t> chosen;
    std::vector<TokenIds> kept, next;
    for (std::int64_t i = 0, count = 1 + below(4); i < count; ++i) {
      chosen.push_back(below(rows.size()));
      kept.push_back(rows[static_cast<std::size_t>(chosen.back())]);
    }
    session->select(chosen);
    rows = kept;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const auto number = static_cast<std::int64_t>(row);
      if (below(4) == 0) {
        const bool far = below(3) == 0;
        rows[row].resize(rows[row].size() - static_cast<std::size_t>(far ? 400 + below(100) : below(200)));
        session->rewind(number, static_cast<std::int64_t>(rows[row].size()));
      }
      if (session->length(number) == 0) ++lost;
      for (std::int64_t i = 0, count = 1 + below(150); i < count; ++i) rows[row].push_back(below(13));
      next.push_back({rows[row].begin() + session->length(number), rows[row].end()});
    }
    const at::Tensor logits = session->read(next);
    for (std::size_t row = 0; row < rows.size() && step % 3 == 2; ++row) {
      CAPTURE(step, row);
      CHECK(relative_error(logits[static_cast<std::int64_t>(row)], last_logits(*model, rows[row])) <= 1e-5);
    }
  }
  CHECK(lost > 0);
}

TEST_CASE(
    "A row that went back beyond what its window keeps is empty, and one that did not is as long as asked") {
  const auto model = test::random_gpt(windowed_config(), 8);
  const auto packed = pack(*model, {});
  const TokenIds tokens = list(test::random_ids(model->config(), 1, 1500, 1));
  const auto session = packed->begin(1, 1600);
  session->read({tokens});
  session->rewind(0, 1400);
  REQUIRE(session->length(0) == 1400);
  const TokenIds rest(tokens.begin() + 1400, tokens.end());
  CHECK(relative_error(session->read({rest})[0], last_logits(*model, tokens)) <= 1e-5);
  session->rewind(0, 600);
  REQUIRE(session->length(0) == 0);
  CHECK(relative_error(session->read({{tokens.begin(), tokens.begin() + 600}})[0],
                       last_logits(*model, {tokens.begin(), tokens.begin() + 600})) <= 1e-5);
}
