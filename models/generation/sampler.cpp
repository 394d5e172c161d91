#include "models/generation/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ops/argmax.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>
#include <c10/util/irange.h>

#include "data/base/error.h"

namespace zoo {
namespace {

constexpr double kRemoved = -std::numeric_limits<double>::infinity();

// Throws for `logits` [V] of a row without a possible token.
[[noreturn]] void refuse(const at::Tensor& logits) {
  if (logits.isneginf().all().item<bool>())
    throw Error("no token can be chosen: the filters and the constraint allow none");
  throw Error("the model's logits are not finite numbers: no token can be chosen");
}

TokenIds largest(const at::Tensor& logits) {
  const at::Tensor ids = at::argmax(logits, -1, /*keepdim=*/true);
  const at::Tensor values = logits.gather(-1, ids).to(at::kCPU);
  const at::Tensor on_cpu = ids.to(at::kCPU);
  TokenIds chosen;
  for (const auto row : c10::irange(on_cpu.size(0))) {
    if (!std::isfinite(values.const_data_ptr<float>()[row])) refuse(logits[row]);
    chosen.push_back(static_cast<TokenId>(on_cpu.const_data_ptr<std::int64_t>()[row]));
  }
  return chosen;
}

// Divides by `temperature`: below 1 sharpens, above 1 flattens.
LogitsFilter temperature_filter(double temperature) {
  if (!(temperature > 0) || !std::isfinite(temperature))
    throw Error("temperature must be a positive number, got ", temperature);
  // At least 1e-30, which leaves the largest alone, and does not overflow.
  return [divisor = std::max(temperature, 1e-30)](const at::Tensor& logits, const RowHistories&) {
    return logits / divisor;
  };
}

// Keeps the k largest (Fan et al., 2018) and, like Hugging Face, every token that ties with the k-th.
LogitsFilter top_k_filter(std::int64_t k, std::int64_t least) {
  if (k <= 0) throw Error("top_k must be a positive number of tokens (0 in the options: all), got ", k);
  return [most = std::max(k, least)](const at::Tensor& logits, const RowHistories&) {
    if (most >= logits.size(-1)) return logits;
    const at::Tensor smallest_kept = std::get<0>(at::topk(logits, most)).slice(-1, -1);  // [B, 1]
    return logits.masked_fill(logits.lt(smallest_kept), kRemoved);
  };
}

// Nucleus sampling (Holtzman et al., 2020): keeps the most probable tokens whose probabilities reach p. Like
// Hugging Face, removes tokens in ascending order while their sum is at most 1 - p, never the last `least`.
LogitsFilter top_p_filter(double p, std::int64_t least) {
  if (!(p >= 0 && p <= 1)) throw Error("top_p must be in [0, 1], got ", p);
  return [=](const at::Tensor& logits, const RowHistories&) {
    const auto [sorted, order] = at::sort(logits, /*dim=*/-1, /*descending=*/false);
    at::Tensor removed = at::softmax(sorted, -1).cumsum(-1).le(1.0 - p);
    removed.slice(-1, -least).fill_(false);
    return logits.masked_fill(removed.scatter(-1, order, removed), kRemoved);
  };
}

// Keeps tokens whose probability is at least p times the largest (Nguyen et al., 2024).
LogitsFilter min_p_filter(double p, std::int64_t least) {
  if (!(p >= 0 && p <= 1)) throw Error("min_p must be in [0, 1], got ", p);
  return [=](const at::Tensor& logits, const RowHistories&) {
    const at::Tensor probabilities = at::softmax(logits, -1);
    const at::Tensor highest = std::get<0>(at::topk(probabilities, std::min(least, logits.size(-1))));
    const at::Tensor few = probabilities.lt(highest.slice(-1, 0, 1) * p);
    return logits.masked_fill(few.logical_and(probabilities.lt(highest.slice(-1, -1))), kRemoved);
  };
}

// Locally typical sampling (Meister et al., 2023): keeps the tokens whose information is nearest to the
// distribution's entropy, until their probabilities reach `mass`.
LogitsFilter typical_filter(double mass, std::int64_t least) {
  if (!(mass > 0 && mass < 1)) throw Error("typical_p must be in (0, 1) (1 in the options: all), got ", mass);
  return [=](const at::Tensor& logits, const RowHistories&) {
    const at::Tensor information = -at::log_softmax(logits, -1);
    const at::Tensor entropy = (information * at::exp(-information)).nansum(-1, /*keepdim=*/true);
    const auto [distances, order] = at::sort((information - entropy).abs(), /*dim=*/-1, /*descending=*/false);
    const at::Tensor reached = at::softmax(logits.gather(-1, order), -1).cumsum(-1);
    // Keeps the token whose probability reaches the mass, and any with equal distance.
    const at::Tensor last = reached.lt(mass).sum(-1, /*keepdim=*/true).clamp_max_(logits.size(-1) - 1);
    at::Tensor removed = distances.gt(distances.gather(-1, last));
    removed.slice(-1, 0, least).fill_(false);
    return logits.masked_fill(removed.scatter(-1, order, removed), kRemoved);
  };
}

}  // namespace

LogitsFilters make_filters(const SamplingOptions& options, std::int64_t least) {
  LogitsFilters filters;
  if (options.temperature != 1.0) filters.push_back(temperature_filter(options.temperature));
  if (options.top_k != 0) filters.push_back(top_k_filter(options.top_k, least));
  if (options.top_p != 1.0) filters.push_back(top_p_filter(options.top_p, least));
  if (options.min_p != 0.0) filters.push_back(min_p_filter(options.min_p, least));
  if (options.typical_p != 1.0) filters.push_back(typical_filter(options.typical_p, least));
  return filters;
}

TokenSampler::TokenSampler(const SamplingOptions& options, std::size_t rows, std::int64_t least)
    : greedy_(options.temperature == 0) {
  if (!greedy_) filters_ = make_filters(options, least);
  for (const auto row : c10::irange(rows)) {
    std::seed_seq seed{static_cast<std::uint32_t>(options.seed),
                       static_cast<std::uint32_t>(options.seed >> 32), static_cast<std::uint32_t>(row)};
    generators_.emplace_back(seed);
  }
}

at::Tensor TokenSampler::distribution(const at::Tensor& logits) const {
  if (greedy_) {
    const auto ids = largest(logits.to(at::kFloat));
    at::Tensor certain = at::zeros(logits.sizes(), at::kFloat);
    for (const auto b : c10::irange(ids.size())) certain[static_cast<std::int64_t>(b)][ids[b]] = 1;
    return certain;
  }
  const at::Tensor allowed = filtered(logits.to(at::kFloat));
  at::Tensor weights = at::softmax(allowed, -1).to(at::kCPU).contiguous();
  const at::Tensor good = weights.isfinite().all(-1);
  for (const auto b : c10::irange(weights.size(0)))
    if (!good.const_data_ptr<bool>()[b]) refuse(allowed[b]);
  return weights;
}

at::Tensor TokenSampler::draw_places(const at::Tensor& scores, std::int64_t count, std::size_t row) {
  const at::Tensor noisy = scores.to(at::kCPU, at::kDouble, /*non_blocking=*/false, /*copy=*/true);
  auto* keys = noisy.mutable_data_ptr<double>();
  for (const auto i : c10::irange(noisy.numel()))
    if (std::isfinite(keys[i])) keys[i] -= std::log(-std::log1p(-uniform(row)));
  return std::get<1>(at::topk(noisy, count));
}

// The first id whose cumulative weight exceeds a random share of the sum.
TokenId TokenSampler::draw(const at::Tensor& weights, std::size_t row) {
  const auto* weight = weights.const_data_ptr<float>();
  const auto count = static_cast<TokenId>(weights.size(0));
  double sum = 0;
  for (const auto id : c10::irange(count)) sum += weight[id];
  double rest = uniform(row) * sum;
  TokenId last = 0;
  for (const auto id : c10::irange(count)) {
    if (weight[id] <= 0) continue;
    last = id;
    rest -= weight[id];
    if (rest < 0) break;
  }
  return last;
}

// From the generator's upper 53 bits, because std's distributions differ between libraries.
double TokenSampler::uniform(std::size_t row) {
  return static_cast<double>(generators_.at(row)() >> 11) * 0x1.0p-53;
}

TokenIds TokenSampler::sample(const at::Tensor& logits, const std::vector<std::size_t>& rows) {
  if (greedy_) return largest(logits.to(at::kFloat));
  const at::Tensor weights = distribution(logits);
  TokenIds chosen;
  for (const auto b : c10::irange(rows.size()))
    chosen.push_back(draw(weights[static_cast<std::int64_t>(b)], rows[b]));
  return chosen;
}

}  // namespace zoo
