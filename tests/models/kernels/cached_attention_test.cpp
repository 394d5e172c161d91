#include <algorithm>
#include <cmath>

#include "tests/models/kernels/inference_kernels.h"

using namespace zoo::kernels;
using zoo::test::find_kernels;
using zoo::test::Floats;
using zoo::test::random_floats;

namespace {

struct AttentionCase {
  WeightType type;
  std::size_t head_dim, positions, queries, visible, growth, window;
  bool biased;
};

// Keys or values. For a cache of int8 each row is of steps of its own, as many of them as a byte can hold, so
// that what is kept is what was given.
Floats cached_floats(const AttentionCase& c, unsigned seed) {
  Floats values = random_floats(c.positions * c.head_dim, seed);
  if (c.type != WeightType::kInt8) return values;
  for (std::size_t s = 0; s < c.positions; ++s) {
    const float step = std::ldexp(1.0F, -5 - static_cast<int>(s % 3));
    float* row = values.data() + s * c.head_dim;
    for (std::size_t d = 0; d < c.head_dim; ++d)
      row[d] = step * std::fmin(127.0F, std::fmax(-127.0F, std::round(row[d] / step)));
    row[s % c.head_dim] = s % 2 == 0 ? 127 * step : -127 * step;
  }
  return values;
}

double attention_error(const InferenceKernels& kernels, const AttentionCase& c) {
  const std::size_t capacity = panel_count(c.positions) * kPanelOutputs;
  std::vector<std::byte> memory(key_bytes(c.type, c.head_dim, capacity) +
                                value_bytes(c.type, c.head_dim, capacity));
  const HeadCache cache{memory.data(), memory.data() + key_bytes(c.type, c.head_dim, capacity)};
  const Floats keys = cached_floats(c, 6), values = cached_floats(c, 7);
  const Floats queries = random_floats(c.queries * c.head_dim, 8),
               bias = random_floats(c.positions + c.queries, 9);
  for (std::size_t s = 0; s < c.positions; ++s)
    kernels.append(c.type, cache, c.head_dim, s, keys.data() + s * c.head_dim,
                   values.data() + s * c.head_dim);
  std::vector<std::byte> scratch(attention_scratch_bytes(c.head_dim, c.positions) + 64);
  Floats result(queries.size());
  const float scale = 0.3F;
  const float* first_bias = c.biased ? bias.data() + c.queries - 1 : nullptr;
  kernels.attend({.type = c.type,
                  .cache = cache,
                  .head_dim = c.head_dim,
                  .queries = queries.data(),
                  .query_row = c.head_dim,
                  .query_count = c.queries,
                  .visible = c.visible,
                  .growth = c.growth,
                  .window = c.window,
                  .scale = scale,
                  .bias = first_bias,
                  .bias_row = -1,
                  .result = result.data(),
                  .result_row = c.head_dim,
                  .scratch = scratch.data()});
  double worst = 0;
  for (std::size_t q = 0; q < c.queries; ++q) {
    const std::size_t end = c.visible + q * c.growth;
    const std::size_t begin = c.window > 0 && end > c.window ? end - c.window : 0;
    std::vector<double> mixed(c.head_dim);
    double sum = 0;
    for (std::size_t s = begin; s < end; ++s) {
      double score = 0;
      for (std::size_t d = 0; d < c.head_dim; ++d)
        score += static_cast<double>(queries[q * c.head_dim + d]) * keys[s * c.head_dim + d];
      const double weight = std::exp(score * scale + (c.biased ? bias[c.queries - 1 - q + s] : 0.0F));
      sum += weight;
      for (std::size_t d = 0; d < c.head_dim; ++d) mixed[d] += weight * values[s * c.head_dim + d];
    }
    for (std::size_t d = 0; d < c.head_dim; ++d)
      worst = std::max(worst, std::fabs(mixed[d] / sum - result[q * c.head_dim + d]));
  }
  return worst;
}

}  // namespace

FOR_EVERY_INSTRUCTION_SET("Every instruction set attends over a cache") {
  ZOO_NEEDS(find_kernels(Set) != nullptr, name_of(Set));
  const InferenceKernels* kernels = find_kernels(Set);
  REQUIRE(kernels != nullptr);
  for (const auto type : {WeightType::kFloat32, WeightType::kBfloat16, WeightType::kInt8}) {
    const double limit = type == WeightType::kBfloat16 ? 3e-2 : 1e-5;
    for (const std::size_t head_dim : {5, 16, 64, 80}) {
      CAPTURE(static_cast<int>(type), head_dim);
      CHECK(attention_error(*kernels, {type, head_dim, 1, 1, 1, 0, 0, false}) < limit);
      CHECK(attention_error(*kernels, {type, head_dim, 150, 3, 150, 0, 0, true}) < limit);     // all see all
      CHECK(attention_error(*kernels, {type, head_dim, 150, 150, 1, 1, 0, false}) < limit);    // causal
      CHECK(attention_error(*kernels, {type, head_dim, 150, 100, 51, 1, 0, true}) < limit);    // after a past
      CHECK(attention_error(*kernels, {type, head_dim, 200, 180, 21, 1, 40, false}) < limit);  // a window
    }
  }
}

FOR_EVERY_INSTRUCTION_SET("A cache of bytes keeps each key and value to half a step of its own") {
  ZOO_NEEDS(find_kernels(Set) != nullptr, name_of(Set));
  const InferenceKernels* kernels = find_kernels(Set);
  REQUIRE(kernels != nullptr);
  constexpr std::size_t kHeadDim = 20, kPositions = 70;
  Floats keys = random_floats(kPositions * kHeadDim, 11), values = random_floats(kPositions * kHeadDim, 12);
  for (std::size_t d = 0; d < kHeadDim; ++d) keys[3 * kHeadDim + d] = values[3 * kHeadDim + d] = 0;
  for (std::size_t d = 0; d < kHeadDim; ++d) values[66 * kHeadDim + d] *= 1000;
  const auto largest = [](const float* row) {
    float found = 0;
    for (std::size_t d = 0; d < kHeadDim; ++d) found = std::max(found, std::fabs(row[d]));
    return found;
  };
  std::vector<std::byte> memory(key_bytes(WeightType::kInt8, kHeadDim, 128) +
                                value_bytes(WeightType::kInt8, kHeadDim, 128));
  CHECK(memory.size() == 128 * (20 + 4 + 32 + 4));
  const HeadCache cache{memory.data(), memory.data() + key_bytes(WeightType::kInt8, kHeadDim, 128)};
  for (std::size_t s = 0; s < kPositions; ++s)
    kernels->append(WeightType::kInt8, cache, kHeadDim, s, keys.data() + s * kHeadDim,
                    values.data() + s * kHeadDim);
  std::vector<std::byte> scratch(attention_scratch_bytes(kHeadDim, kPositions) + 64);
  // One position at a time gives its value; one that has the whole weight, by its bias, too.
  for (const std::size_t s : {std::size_t{0}, std::size_t{3}, std::size_t{63}, std::size_t{66}}) {
    CAPTURE(s);
    Floats bias(kPositions, -1e9F), result(kHeadDim);  // so far down that the others weigh 1e-30 or less
    bias[s] = 0;
    const Floats query(kHeadDim, 0.0F);
    kernels->attend({.type = WeightType::kInt8,
                     .cache = cache,
                     .head_dim = kHeadDim,
                     .queries = query.data(),
                     .query_row = kHeadDim,
                     .query_count = 1,
                     .visible = kPositions,
                     .bias = bias.data(),
                     .result = result.data(),
                     .result_row = kHeadDim,
                     .scratch = scratch.data()});
    const float* row = values.data() + s * kHeadDim;
    for (std::size_t d = 0; d < kHeadDim; ++d)
      CHECK(std::fabs(result[d] - row[d]) <= largest(row) / 254 * 1.0001F + 1e-25F);
  }
  // Two positions: the ratio of their weights tells the difference of their scores.
  for (std::size_t d = 0; d < kHeadDim; ++d) {
    Floats query(kHeadDim, 0.0F), result(kHeadDim);
    query[d] = 1;
    kernels->attend({.type = WeightType::kInt8,
                     .cache = cache,
                     .head_dim = kHeadDim,
                     .queries = query.data(),
                     .query_row = kHeadDim,
                     .query_count = 1,
                     .visible = 2,
                     .result = result.data(),
                     .result_row = kHeadDim,
                     .scratch = scratch.data()});
    const double a = keys[d], b = keys[kHeadDim + d];
    const double off = (largest(keys.data()) + largest(keys.data() + kHeadDim)) / 254;
    const double weight = 1 / (1 + std::exp(b - a));
    for (std::size_t e = 0; e < kHeadDim; ++e) {
      const double u = values[e], v = values[kHeadDim + e];
      // A weight moves by a quarter of what the scores do, at most.
      CHECK(std::fabs(weight * u + (1 - weight) * v - result[e]) <=
            off / 4 * std::fabs(u - v) + largest(values.data()) / 254 +
                largest(values.data() + kHeadDim) / 254);
    }
  }
}
