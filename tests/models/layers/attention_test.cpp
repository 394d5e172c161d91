#include "models/layers/attention/attention.h"

#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;
using zoo::test::largest_difference;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// [T, D] of one head of one row.
at::Tensor heads(std::initializer_list<std::initializer_list<double>> rows) {
  std::vector<double> values;
  for (const auto& row : rows) values.insert(values.end(), row);
  const auto count = static_cast<std::int64_t>(rows.size());
  return at::tensor(values, at::kFloat).reshape({1, 1, count, -1});
}

// One head, D = 2. With scale 1, q k^T is
//   [1 0] [ln 3  0   ]   [ln 3  0   ]
//   [0 1] [0     ln 2] = [0     ln 2]
// so that softmax gives [3/4 1/4] and [1/3 2/3].
const double kLn2 = std::log(2.0), kLn3 = std::log(3.0);
const at::Tensor& queries() {
  static const at::Tensor q = heads({{1, 0}, {0, 1}});
  return q;
}
const at::Tensor& keys() {
  static const at::Tensor k = heads({{kLn3, 0}, {0, kLn2}});
  return k;
}
const at::Tensor& values() {
  static const at::Tensor v = heads({{4, 8}, {12, -4}});
  return v;
}

// Both ways must give the same: the kernel, and the weights multiplied out.
at::Tensor attend(const AttentionMask& mask, bool need_weights, double scale = 1.0) {
  const AttentionOptions options{.scale = scale, .need_weights = need_weights};
  return ops::scaled_dot_product_attention(queries(), keys(), values(), mask, options).output;
}

}  // namespace

TEST_CASE("attention of two positions equals the sums done by hand") {
  const bool need_weights = GENERATE(false, true);
  SECTION("every key seen") {
    // 3/4 [4 8] + 1/4 [12 -4] = [6 5];  1/3 [4 8] + 2/3 [12 -4] = [28/3 0]
    CHECK(largest_difference(attend({}, need_weights), heads({{6, 5}, {28.0 / 3, 0}})) < 1e-6);
  }
  SECTION("causal: the first query sees the first key alone") {
    CHECK(largest_difference(attend({.causal = true}, need_weights), heads({{4, 8}, {28.0 / 3, 0}})) < 1e-6);
  }
  SECTION("the bias is added to the scores") {
    // The second row becomes [ln 6, ln 2]: 6/8 and 2/8.
    const AttentionMask mask{.bias = heads({{0, -kInfinity}, {std::log(6.0), 0}})};
    CHECK(largest_difference(attend(mask, need_weights), heads({{4, 8}, {6, 5}})) < 1e-6);
  }
}

TEST_CASE("the scores are scaled by 1 / sqrt(D) unless a scale is given") {
  const bool need_weights = GENERATE(false, true);
  // With scale 1 / sqrt(2), exp(ln 3 / sqrt(2)) = 3^0.70711 = 2.17457 against 1.
  const double first = std::pow(3.0, 1 / std::sqrt(2.0)), weight = first / (first + 1);
  const at::Tensor output = attend({}, need_weights, /*scale=*/0.0);
  CHECK(output[0][0][0][0].item<double>() == Approx(4 * weight + 12 * (1 - weight)).epsilon(1e-6));
}

TEST_CASE("a configuration's scale takes the place of 1 / sqrt(D) in self- and cross-attention") {
  TransformerConfig config = test::small_config();
  config.position = PositionKind::kNone;
  at::manual_seed(9);
  SelfAttention self(config);
  CrossAttention cross(config);
  config.attention_scale = 1.0;
  SelfAttention unscaled_self(config);
  CrossAttention unscaled_cross(config);
  const at::NoGradGuard no_grad;
  // The same function, if the queries are smaller by what the scores are not divided by.
  unscaled_self->qkv->weight.copy_(self->qkv->weight);
  unscaled_self->qkv->bias.copy_(self->qkv->bias);
  unscaled_self->qkv->weight.slice(0, 0, 12).div_(std::sqrt(6.0));
  unscaled_self->qkv->bias.slice(0, 0, 12).div_(std::sqrt(6.0));
  unscaled_cross->kv = cross->kv;
  unscaled_self->out = self->out;
  unscaled_cross->out = cross->out;
  unscaled_cross->q->weight.copy_(cross->q->weight / std::sqrt(6.0));
  unscaled_cross->q->bias.copy_(cross->q->bias / std::sqrt(6.0));
  const at::Tensor x = at::randn({2, 4, 12}), memory = at::randn({2, 3, 12});
  at::Tensor weights;
  at::Tensor* const wanted = GENERATE(false, true) ? &weights : nullptr;
  const SelfAttentionContext context{.mask = {.causal = true}, .weights = wanted};
  CHECK(largest_difference(unscaled_self(x, context), self(x, context)) < 1e-6);
  const CrossAttentionContext to_memory{.memory = memory, .weights = wanted};
  CHECK(largest_difference(unscaled_cross(x, to_memory), cross(x, to_memory)) < 1e-6);
}

TEST_CASE("the weights come only when asked for, and each row of them sums to one") {
  const auto plain = ops::scaled_dot_product_attention(queries(), keys(), values(), {}, {.scale = 1.0});
  CHECK(!plain.weights.defined());
  const auto explained = ops::scaled_dot_product_attention(queries(), keys(), values(), {},
                                                           {.scale = 1.0, .need_weights = true});
  CHECK(largest_difference(explained.weights, heads({{0.75, 0.25}, {1.0 / 3, 2.0 / 3}})) < 1e-6);
}

TEST_CASE("a row whose keys are all hidden gives zeros, and zero gradients") {
  const bool need_weights = GENERATE(false, true);
  at::Tensor q = queries().clone().set_requires_grad(true), k = keys().clone().set_requires_grad(true);
  const at::Tensor kept = at::tensor({0, 1}, at::kLong).unsqueeze(0);
  const AttentionMask mask =
      make_attention_mask(kept, {.queries = 2, .keys = 2, .causal = true}, at::kFloat, at::kCPU);
  const auto result = ops::scaled_dot_product_attention(q, k, values(), mask, {.need_weights = need_weights});
  // Query 0 may see key 0 alone, which is padding; query 1 sees key 1.
  CHECK(at::equal(result.output, heads({{0, 0}, {12, -4}})));
  if (need_weights) CHECK(at::equal(result.weights, heads({{0, 0}, {0, 1}})));
  result.output.sum().backward();
  CHECK(at::equal(q.grad(), at::zeros_like(q)));
  CHECK(at::equal(k.grad(), at::zeros_like(k)));
}

TEST_CASE("each group of query heads shares its key and value head") {
  const bool need_weights = GENERATE(false, true);
  at::manual_seed(5);
  const at::Tensor q = at::randn({2, 6, 4, 8}), k = at::randn({2, 2, 5, 8}), v = at::randn({2, 2, 5, 8});
  const at::Tensor grouped =
      ops::scaled_dot_product_attention(q, k, v, {}, {.need_weights = need_weights}).output;
  for (std::int64_t head = 0; head < 6; ++head) {
    const std::int64_t group = head / 3;  // heads 0, 1, 2 and 3, 4, 5
    const at::Tensor scores = q.select(1, head).matmul(k.select(1, group).transpose(1, 2)) / std::sqrt(8.0);
    CHECK(largest_difference(grouped.select(1, head), scores.softmax(-1).matmul(v.select(1, group))) < 1e-5);
  }
}

TEST_CASE("self-attention is queries, keys and values of one projection, in this order, head by head") {
  TransformerConfig config = test::small_config();
  config.num_heads = 4;
  config.num_kv_heads = 2;  // D = 3: 12 rows of queries, 6 of keys, 6 of values
  at::manual_seed(6);
  SelfAttention attention(config);
  REQUIRE(attention->qkv->weight.sizes() == at::IntArrayRef({24, 12}));
  const at::Tensor x = at::randn({2, 5, 12});
  const at::Tensor weight = attention->qkv->weight, bias = attention->qkv->bias;
  at::Tensor merged = at::empty({2, 5, 12});
  for (std::int64_t head = 0; head < 4; ++head) {
    const auto project = [&](std::int64_t row) {
      return x.matmul(weight.slice(0, row, row + 3).t()) + bias.slice(0, row, row + 3);
    };
    const at::Tensor q = project(head * 3), k = project(12 + head / 2 * 3), v = project(18 + head / 2 * 3);
    const at::Tensor weights = (q.matmul(k.transpose(1, 2)) / std::sqrt(3.0)).softmax(-1);
    merged.slice(2, head * 3, head * 3 + 3).copy_(weights.matmul(v));
  }
  const at::Tensor expected = merged.matmul(attention->out->weight.t()) + attention->out->bias;
  CHECK(largest_difference(attention(x, SelfAttentionContext{}), expected) < 1e-5);
}

TEST_CASE("cross-attention takes queries from x and keys and values from memory") {
  TransformerConfig config = test::small_config();
  at::manual_seed(7);
  CrossAttention attention(config);
  const at::Tensor x = at::randn({2, 3, 12}), memory = at::randn({2, 5, 12});
  const AttentionMask mask =
      make_attention_mask(at::tensor({1, 1, 0, 1, 1, 1, 1, 1, 0, 0}, at::kLong).view({2, 5}),
                          {.queries = 3, .keys = 5}, at::kFloat, at::kCPU);
  at::Tensor weights;
  const at::Tensor output =
      attention(x, CrossAttentionContext{.memory = memory, .mask = mask, .weights = &weights});
  CHECK(output.sizes() == at::IntArrayRef({2, 3, 12}));
  CHECK(weights.sizes() == at::IntArrayRef({2, 2, 3, 5}));
  CHECK(weights[0].select(-1, 2).abs().max().item<double>() == 0);
  // Values of hidden positions of the memory do not matter, those of the others do.
  at::Tensor other = memory.clone();
  other[0][2].fill_(100.0);
  CHECK(largest_difference(attention(x, CrossAttentionContext{.memory = other, .mask = mask}), output) <
        1e-6);
  other[0][1].add_(1.0);
  CHECK(largest_difference(attention(x, CrossAttentionContext{.memory = other, .mask = mask}), output) >
        1e-4);
}

TEST_CASE("dropout on the attention weights acts in training only and keeps their mean") {
  TransformerConfig config = test::small_config();
  config.attention_dropout = 0.5;
  at::manual_seed(8);
  SelfAttention attention(config);
  const at::Tensor x = at::randn({1, 6, 12});
  attention->eval();
  CHECK(at::equal(attention(x, SelfAttentionContext{}), attention(x, SelfAttentionContext{})));
  attention->train();
  const at::NoGradGuard no_grad;
  CHECK_FALSE(at::equal(attention(x, SelfAttentionContext{}), attention(x, SelfAttentionContext{})));
  at::Tensor weights;
  for (at::Tensor* wanted : {static_cast<at::Tensor*>(nullptr), &weights}) {
    const SelfAttentionContext context{.weights = wanted};
    at::Tensor sum = at::zeros_like(x);
    constexpr int kRuns = 4000;
    for (int i = 0; i < kRuns; ++i) sum += attention(x, context);
    attention->eval();
    CHECK(largest_difference(sum / kRuns, attention(x, SelfAttentionContext{})) < 0.05);
    attention->train();
  }
}
