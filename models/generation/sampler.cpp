#include "models/generation/sampler.h"

#include <cmath>

#include <ATen/ops/argmax.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>
#include <c10/util/irange.h>

#include "data/base/error.h"

namespace zoo {
namespace {

// A double in [0, 1) from the generator's upper 53 bits, because std's distributions differ between
// libraries.
double next_uniform(std::mt19937_64& generator) {
  return static_cast<double>(generator() >> 11) * 0x1.0p-53;
}

// Throws for `logits` [V] of a row without a possible token.
[[noreturn]] void refuse(const at::Tensor& logits) {
  if (logits.isneginf().all().item<bool>())
    throw Error("no token can be chosen: the filters and the constraint allow none");
  throw Error("the model's logits are not finite numbers: no token can be chosen");
}

// First id whose cumulative weight exceeds `point` of the sum.
TokenId draw_from(const float* weights, TokenId count, double point) {
  double sum = 0;
  for (const auto id : c10::irange(count)) sum += weights[id];
  double rest = point * sum;
  TokenId last = 0;
  for (const auto id : c10::irange(count)) {
    if (weights[id] <= 0) continue;
    last = id;
    rest -= weights[id];
    if (rest < 0) break;
  }
  return last;
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

}  // namespace

TokenSampler::TokenSampler(const SamplingOptions& options, std::size_t rows, std::int64_t least)
    : greedy_(options.temperature == 0) {
  if (!greedy_)
    filters_ = make_filters({.temperature = options.temperature,
                             .top_k = options.top_k,
                             .top_p = options.top_p,
                             .min_p = options.min_p,
                             .typical_p = options.typical_p,
                             .least = least});
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
  for (const auto b : c10::irange(weights.size(0))) {
    if (!good.const_data_ptr<bool>()[b]) refuse(allowed[b]);
  }
  return weights;
}

at::Tensor TokenSampler::draw_places(const at::Tensor& scores, std::int64_t count, std::size_t row) {
  const at::Tensor noisy = scores.to(at::kCPU, at::kDouble, /*non_blocking=*/false, /*copy=*/true);
  auto* keys = noisy.mutable_data_ptr<double>();
  for (const auto i : c10::irange(noisy.numel())) {
    if (std::isfinite(keys[i])) keys[i] -= std::log(-std::log1p(-uniform(row)));
  }
  return std::get<1>(at::topk(noisy, count));
}

TokenId TokenSampler::draw(const at::Tensor& weights, std::size_t row) {
  return draw_from(weights.const_data_ptr<float>(), static_cast<TokenId>(weights.size(0)), uniform(row));
}

double TokenSampler::uniform(std::size_t row) {
  return next_uniform(generators_.at(row));
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
