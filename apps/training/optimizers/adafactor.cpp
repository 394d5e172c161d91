#include "apps/training/optimizers/adafactor.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ops/matmul.h>

namespace zoo {
namespace {

constexpr double kEpsilon = std::numeric_limits<float>::epsilon();
constexpr double kBeta2Decay = -0.8;     // the second moment forgets 1 - step^kBeta2Decay of itself
constexpr double kSmallestScale = 1e-3;  // lower bound of a weight's root mean square, which scales its steps
constexpr double kClippingThreshold = 1.0;  // for an update's root mean square

double root_mean_square(const at::Tensor& x) {
  return x.norm().item<double>() / std::sqrt(static_cast<double>(x.numel()));
}

}  // namespace

Adafactor::Adafactor(const torch::nn::Module& module, const OptimizerOptions& options, Ranks* ranks)
    : Optimizer(module, options, ranks),
      row_means_(&add_state("row_mean")),
      column_means_(&add_state("column_mean")),
      means_(&add_state("mean")) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!decays(i)) {
      row_means_->tensors[i] = column_means_->tensors[i] = at::Tensor();
      continue;
    }
    means_->tensors[i] = at::Tensor();
    row_means_->tensors[i] = row_means_->tensors[i].slice(-1, 0, 1).clone();
    column_means_->tensors[i] = column_means_->tensors[i].slice(-2, 0, 1).clone();
  }
}

at::Tensor Adafactor::inverse_root(std::size_t i, const at::Tensor& g, double forget) {
  if (!decays(i)) return means_->tensors[i].lerp_(g.square(), forget).clamp_min(kEpsilon * kEpsilon).rsqrt_();
  at::Tensor &rows = row_means_->tensors[i], &columns = column_means_->tensors[i];
  const at::Tensor squares = g.square();
  rows.lerp_(squares.mean(-1, /*keepdim=*/true), forget);
  columns.lerp_(squares.mean(-2, /*keepdim=*/true), forget);
  const at::Tensor product =
      at::matmul(rows, columns).div_(rows.mean(-2, /*keepdim=*/true).clamp_min_(kEpsilon));
  return product.clamp_min(kEpsilon * kEpsilon).rsqrt_();
}

void Adafactor::update(const Update& update) {
  if (update.found_inf.item<float>() != 0) return;
  const double step = step_.item<double>(), forget = std::pow(step, kBeta2Decay);
  const double relative = std::min(update.learning_rate, 1 / std::sqrt(step));
  for (const std::size_t i : update.active) {
    const at::Tensor g = gradient(i, update);
    const double size = std::max(kSmallestScale, root_mean_square(parameter(i))) * relative;
    if (decays(i)) parameter(i).mul_(1 - update.learning_rate * update.decay_share * options_.weight_decay);
    const at::Tensor change = inverse_root(i, g, forget).mul_(g);
    const double excess = std::max(1.0, root_mean_square(change) / kClippingThreshold);
    parameter(i).sub_(change, size / excess);
  }
}

}  // namespace zoo
