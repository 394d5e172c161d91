#include <cmath>

#include "models/layers/attention/attention.h"
#include "models/layers/attention/positions.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;
using zoo::test::largest_difference;

namespace {

std::vector<std::int64_t> buckets_of(const std::vector<std::int64_t>& distances,
                                     const BucketOptions& options) {
  const at::Tensor buckets = t5_buckets(at::tensor(distances), options);
  const auto* first = buckets.const_data_ptr<std::int64_t>();
  return {first, first + buckets.numel()};
}

// [rows, columns] as [1, 1, rows, columns].
at::Tensor one_head(const std::vector<double>& values, std::int64_t columns) {
  return at::tensor(values, at::kFloat).view({1, 1, -1, columns});
}

}  // namespace

TEST_CASE("distances are key position minus query position, the queries last") {
  CHECK(at::equal(relative_distances(2, 4, at::kCPU),
                  at::tensor({-2, -1, 0, 1, -3, -2, -1, 0}, at::kLong).view({2, 4})));
  CHECK(at::equal(relative_distances(1, 1, at::kCPU), at::zeros({1, 1}, at::kLong)));
}

TEST_CASE("T5's buckets in both directions: near distances alone, far ones in growing ranges") {
  // Four buckets a direction, two of them exact. 2 + 2 ln(n / 2) / ln 8 reaches 3 at n = 2 sqrt(8) = 5.7.
  const BucketOptions options{.buckets = 8, .max_distance = 16, .bidirectional = true};
  CHECK(buckets_of({0, -1, -2, -3, -5, -6, -15, -16, -1000}, options) ==
        std::vector<std::int64_t>{0, 1, 2, 2, 2, 3, 3, 3, 3});
  CHECK(buckets_of({1, 2, 5, 6, 16, 1000}, options) == std::vector<std::int64_t>{5, 6, 6, 7, 7, 7});
}

TEST_CASE("T5's buckets of a decoder: all for the past, none for the future") {
  // Four exact; 4 + 4 ln(n / 4) / ln 8 reaches 5, 6 and 7 at 4 * 8^(1/4) = 6.7, 11.3 and 19.03.
  const BucketOptions options{.buckets = 8, .max_distance = 32, .bidirectional = false};
  CHECK(buckets_of({0, -1, -2, -3, -4, -6, -7, -11, -12, -19, -20, -31, -32, -99}, options) ==
        std::vector<std::int64_t>{0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 7, 7, 7, 7});
  CHECK(buckets_of({1, 2, 50}, options) == std::vector<std::int64_t>{0, 0, 0});
}

TEST_CASE("T5's buckets at the sizes of the published models") {
  // 8 exact a direction; 8 + 8 ln(n / 8) / ln 16: 16 = 8 * 16^(1/4) falls on an edge.
  CHECK(buckets_of({-7, -8, -11, -12, -15, -16, -22, -23, -127, -128, 7, 8, 16, 128}, {}) ==
        std::vector<std::int64_t>{7, 8, 8, 9, 9, 10, 10, 11, 15, 15, 23, 24, 26, 31});
  CHECK_THAT(test::c10_error_of([] { buckets_of({1}, {.buckets = 32, .max_distance = 8}); }),
             Catch::Contains("above 8") && Catch::Contains("32 buckets"));
}

TEST_CASE("DeBERTa's distances have a row each while near, and far ones growing ranges") {
  // Two exact; ceil(ln(n / 2) / ln(15 / 2)) is 1 from 3 to 15, where the range ends, and 2 after it.
  const at::Tensor distances = at::tensor({0, 1, 2, 3, 15, 16, 99, -1, -2, -3, -15, -16, -99}, at::kLong);
  CHECK(at::equal(distance_rows(distances, 4, 16),
                  at::tensor({4, 3, 2, 1, 1, 0, 0, 5, 6, 7, 7, 7, 7}, at::kLong)));
}

TEST_CASE("Disentangled scores are those of queries with a distance's key and of keys with its query") {
  const at::Tensor vector_keys = one_head({10, 20, 30, 40}, 1)[0],
                   vector_queries = one_head({1, 2, 3, 4}, 1)[0];
  const at::Tensor rows = at::tensor({0, 1, 2, 0}, at::kLong).view({2, 2});
  // 1 * 10 + 3 * 1, 1 * 20 + 5 * 2; 2 * 30 + 3 * 3, 2 * 10 + 5 * 1: half of each.
  CHECK(at::equal(
      disentangled_scores(one_head({1, 2}, 1), one_head({3, 5}, 1), vector_queries, vector_keys, rows, 0.5),
      one_head({6.5, 15, 34.5, 12.5}, 2)));
}

TEST_CASE("ALiBi's slopes are a geometric series for a power of two and borrow from the next one otherwise") {
  CHECK(at::equal(alibi_slopes(1), at::tensor({1.0F / 256})));
  CHECK(largest_difference(alibi_slopes(4), at::tensor({0.25, 0.0625, 1.0 / 64, 1.0 / 256})) < 1e-9);
  CHECK(largest_difference(alibi_slopes(3), at::tensor({1.0 / 16, 1.0 / 256, 0.25})) < 1e-9);
  // Eight heads' 1/2 … 1/256, then 2^-0.5, 2^-1.5 … of sixteen.
  const at::Tensor twelve = alibi_slopes(12);
  REQUIRE(twelve.size(0) == 12);
  CHECK(largest_difference(twelve.slice(0, 0, 8), at::tensor({0.5, 0.25, 0.125, 1.0 / 16, 1.0 / 32, 1.0 / 64,
                                                              1.0 / 128, 1.0 / 256})) < 1e-9);
  CHECK(largest_difference(twelve.slice(0, 8), at::tensor({std::sqrt(0.5), std::sqrt(0.125),
                                                           std::pow(2, -2.5), std::pow(2, -3.5)})) < 1e-7);
}

TEST_CASE("ALiBi's bias falls with the distance on both sides") {
  const at::Tensor bias = alibi_bias(relative_distances(2, 3, at::kCPU), 2);
  REQUIRE(bias.sizes() == at::IntArrayRef({1, 2, 2, 3}));
  // Slopes 1/16 and 1/256; the second query stands at the last key.
  CHECK(largest_difference(bias[0][0], at::tensor({-1.0, 0.0, -1.0, -2.0, -1.0, 0.0}).view({2, 3}) / 16) ==
        0);
  CHECK(largest_difference(bias[0][1], at::tensor({-1.0, 0.0, -1.0, -2.0, -1.0, 0.0}).view({2, 3}) / 256) ==
        0);
}

TEST_CASE("relative keys add to the scores and relative values to what is summed") {
  // q (k + r) is [ln 3, 0] and [0, ln 2]: weights [3/4, 1/4] and [1/3, 2/3].
  const double ln2 = std::log(2.0), ln3 = std::log(3.0);
  const at::Tensor q = one_head({1, 0, 0, 1}, 2), k = one_head({ln3, 5, 1, ln2}, 2),
                   v = one_head({4, 8, 12, -4}, 2);
  AttentionOptions options{.scale = 1.0};
  options.relative_keys = at::tensor({0.0, 7.0, -1.0, 9.0, 3.0, -5.0, 2.0, 0.0}, at::kFloat).view({2, 2, 2});
  options.relative_values = at::tensor({4.0, 0.0, 0.0, 4.0, 3.0, 3.0, 0.0, -3.0}, at::kFloat).view({2, 2, 2});
  // 3/4 [8 8] + 1/4 [12 0] = [9 6];  1/3 [7 11] + 2/3 [12 -7] = [31/3 -1]
  AttentionOutput result = ops::scaled_dot_product_attention(q, k, v, {}, options);
  CHECK(largest_difference(result.output, one_head({9, 6, 31.0 / 3, -1}, 2)) < 1e-5);
  CHECK(!result.weights.defined());
  options.need_weights = true;
  result = ops::scaled_dot_product_attention(q, k, v, {}, options);
  CHECK(largest_difference(result.weights, one_head({0.75, 0.25, 1.0 / 3, 2.0 / 3}, 2)) < 1e-6);
  // Scaled: weights by the half of both parts.
  options.scale = 0.5;
  result = ops::scaled_dot_product_attention(q, k, v, {}, options);
  CHECK(result.weights[0][0][0][0].item<double>() == Approx(std::sqrt(3.0) / (1 + std::sqrt(3.0))));
}

TEST_CASE("Shaw's positions take the row of the clipped distance, the same for all heads") {
  TransformerConfig config = test::small_config();
  config.position = PositionKind::kShaw;
  config.relative_max_distance = 2;
  config.num_kv_heads = GENERATE(1, 2);
  at::manual_seed(11);
  SelfAttention attention(config);
  REQUIRE(attention->relative_keys->weight.sizes() == at::IntArrayRef({5, 6}));
  const at::Tensor x = at::randn({1, 5, 12});
  const at::Tensor projected = attention->qkv(x)[0];
  const std::int64_t kv_width = 6 * config.kv_heads();
  at::Tensor merged = at::empty({5, 12});
  for (std::int64_t head = 0; head < 2; ++head) {
    const std::int64_t kv = 6 * (config.kv_heads() == 1 ? 0 : head);
    const at::Tensor q = projected.slice(1, 6 * head, 6 * head + 6);
    const at::Tensor k = projected.slice(1, 12 + kv, 18 + kv);
    const at::Tensor v = projected.slice(1, 12 + kv_width + kv, 18 + kv_width + kv);
    for (std::int64_t t = 0; t < 5; ++t) {
      at::Tensor scores = at::empty({5}), values = at::empty({5, 6});
      for (std::int64_t s = 0; s < 5; ++s) {
        const std::int64_t row = std::min<std::int64_t>(std::max<std::int64_t>(s - t, -2), 2) + 2;
        scores[s] = q[t].dot(k[s] + attention->relative_keys->weight[row]) / std::sqrt(6.0);
        values[s].copy_(v[s] + attention->relative_values->weight[row]);
      }
      merged[t].slice(0, 6 * head, 6 * head + 6).copy_(scores.softmax(0).matmul(values));
    }
  }
  const at::Tensor expected = merged.matmul(attention->out->weight.t()) + attention->out->bias;
  CHECK(largest_difference(attention(x, SelfAttentionContext{})[0], expected) < 1e-5);
}

TEST_CASE("gradients reach the tables of Shaw's positions") {
  TransformerConfig config = test::small_config();
  config.position = PositionKind::kShaw;
  config.relative_max_distance = 1;
  at::manual_seed(12);
  SelfAttention attention(config);
  attention(at::randn({1, 4, 12}), SelfAttentionContext{}).square().sum().backward();
  CHECK(attention->relative_keys->weight.grad().abs().sum(1).gt(0).all().item<bool>());
  CHECK(attention->relative_values->weight.grad().abs().sum(1).gt(0).all().item<bool>());
}
