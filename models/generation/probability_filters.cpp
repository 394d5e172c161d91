#include "models/generation/probability_filters.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ops/exp.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/topk.h>

#include "data/base/error.h"

namespace zoo {
namespace {

constexpr double kRemoved = -std::numeric_limits<double>::infinity();

}  // namespace

TemperatureFilter::TemperatureFilter(double temperature) : temperature_(temperature) {
  if (!(temperature > 0) || !std::isfinite(temperature)) {
    throw Error("temperature must be a positive number, got ", temperature);
  }
}

at::Tensor TemperatureFilter::apply(const at::Tensor& logits, const RowHistories&) const {
  return logits / temperature_;
}

TopKFilter::TopKFilter(std::int64_t k, std::int64_t least) : k_(std::max(k, least)) {
  if (k <= 0) throw Error("top_k must be a positive number of tokens (0 in the options: all), got ", k);
}

at::Tensor TopKFilter::apply(const at::Tensor& logits, const RowHistories&) const {
  const std::int64_t k = std::min(k_, logits.size(-1));
  if (k == logits.size(-1)) return logits;
  const at::Tensor smallest_kept = std::get<0>(at::topk(logits, k)).slice(-1, -1);  // [B, 1]
  return logits.masked_fill(logits.lt(smallest_kept), kRemoved);
}

TopPFilter::TopPFilter(double p, std::int64_t least) : p_(p), least_(least) {
  if (!(p >= 0 && p <= 1)) throw Error("top_p must be in [0, 1], got ", p);
}

at::Tensor TopPFilter::apply(const at::Tensor& logits, const RowHistories&) const {
  const auto [sorted, order] = at::sort(logits, /*dim=*/-1, /*descending=*/false);
  at::Tensor removed = at::softmax(sorted, -1).cumsum(-1).le(1.0 - p_);
  removed.slice(-1, -least_).fill_(false);
  return logits.masked_fill(removed.scatter(-1, order, removed), kRemoved);
}

MinPFilter::MinPFilter(double p, std::int64_t least) : p_(p), least_(least) {
  if (!(p >= 0 && p <= 1)) throw Error("min_p must be in [0, 1], got ", p);
}

at::Tensor MinPFilter::apply(const at::Tensor& logits, const RowHistories&) const {
  const at::Tensor probabilities = at::softmax(logits, -1);
  const at::Tensor largest = std::get<0>(at::topk(probabilities, std::min(least_, logits.size(-1))));
  const at::Tensor few = probabilities.lt(largest.slice(-1, 0, 1) * p_);
  return logits.masked_fill(few.logical_and(probabilities.lt(largest.slice(-1, -1))), kRemoved);
}

TypicalFilter::TypicalFilter(double mass, std::int64_t least) : mass_(mass), least_(least) {
  if (!(mass > 0 && mass < 1)) throw Error("typical_p must be in (0, 1) (1 in the options: all), got ", mass);
}

at::Tensor TypicalFilter::apply(const at::Tensor& logits, const RowHistories&) const {
  const at::Tensor information = -at::log_softmax(logits, -1);
  const at::Tensor entropy = (information * at::exp(-information)).nansum(-1, /*keepdim=*/true);
  const auto [distances, order] = at::sort((information - entropy).abs(), /*dim=*/-1, /*descending=*/false);
  const at::Tensor reached = at::softmax(logits.gather(-1, order), -1).cumsum(-1);
  // Keeps the token whose probability reaches the mass, and any with equal distance.
  const at::Tensor last = reached.lt(mass_).sum(-1, /*keepdim=*/true).clamp_max_(logits.size(-1) - 1);
  at::Tensor removed = distances.gt(distances.gather(-1, last));
  removed.slice(-1, 0, least_).fill_(false);
  return logits.masked_fill(removed.scatter(-1, order, removed), kRemoved);
}

LogitsFilters make_filters(const FilterOptions& options) {
  LogitsFilters filters;
  if (options.temperature != 1.0) filters.push_back(std::make_unique<TemperatureFilter>(options.temperature));
  if (options.top_k != 0) filters.push_back(std::make_unique<TopKFilter>(options.top_k, options.least));
  if (options.top_p != 1.0) filters.push_back(std::make_unique<TopPFilter>(options.top_p, options.least));
  if (options.min_p != 0.0) filters.push_back(std::make_unique<MinPFilter>(options.min_p, options.least));
  if (options.typical_p != 1.0)
    filters.push_back(std::make_unique<TypicalFilter>(options.typical_p, options.least));
  return filters;
}

}  // namespace zoo
