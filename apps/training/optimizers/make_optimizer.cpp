#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ops/matmul.h>

#include "apps/training/optimizers/muon.h"
#include "data/base/field_error.h"

namespace zoo {
namespace {

// Stochastic gradient descent with momentum (Sutskever et al., 2013) as in torch.optim.SGD: weight decay is
// part of the gradient, v = momentum v + g, w = w - lr v.
class Sgd final : public Optimizer {
 public:
  using Optimizer::Optimizer;

 private:
  void update(const Update& update) override {
    if (update.found_inf.item<float>() != 0) return;
    const double momentum = options_.momentum.value_or(0.9);
    for (const std::size_t i : update.active) {
      at::Tensor g = gradient(i, update);
      if (decays(i) && options_.weight_decay > 0)
        g = g.add(parameter(i), update.decay_share * options_.weight_decay);
      velocities_.tensors[i].mul_(momentum).add_(g);
      parameter(i).sub_(velocities_.tensors[i], update.learning_rate);
    }
  }

  State& velocities_ = add_state("momentum");
};

// Lion (Chen et al., 2023, algorithm 2): w = w - lr (sign(beta1 m + (1 - beta1) g) + decay w), then
// m = beta2 m + (1 - beta2) g. Needs half of AdamW's memory and a third to a tenth of its learning rate.
class Lion final : public Optimizer {
 public:
  using Optimizer::Optimizer;

 private:
  void update(const Update& update) override {
    if (update.found_inf.item<float>() != 0) return;
    for (const std::size_t i : update.active) {
      const at::Tensor g = gradient(i, update);
      if (decays(i)) parameter(i).mul_(1 - update.learning_rate * update.decay_share * options_.weight_decay);
      const at::Tensor direction = exp_avgs_.tensors[i].lerp(g, 1 - options_.beta1).sign_();
      parameter(i).sub_(direction, update.learning_rate);
      exp_avgs_.tensors[i].lerp_(g, 1 - options_.beta2);
    }
  }

  State& exp_avgs_ = add_state("exp_avg");
};

double root_mean_square(const at::Tensor& x) {
  return x.norm().item<double>() / std::sqrt(static_cast<double>(x.numel()));
}

// Adafactor (Shazeer and Stern, 2018, algorithms 4 and 5) as in torch.optim.Adafactor. It stores the second
// moment of a matrix as row and column means; a step is relative to the size of the weight. The relative
// step is min(learning rate, 1 / sqrt(step)).
class Adafactor final : public Optimizer {
 public:
  Adafactor(const torch::nn::Module& module, const OptimizerOptions& options, Ranks* ranks)
      : Optimizer(module, options, ranks),
        row_means_(add_state("row_mean", [this](std::size_t i) { return decays(i); })),
        column_means_(add_state("column_mean", [this](std::size_t i) { return decays(i); })),
        means_(add_state("mean", [this](std::size_t i) { return !decays(i); })) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!decays(i)) continue;
      row_means_.tensors[i] = row_means_.tensors[i].slice(-1, 0, 1).clone();
      column_means_.tensors[i] = column_means_.tensors[i].slice(-2, 0, 1).clone();
    }
  }

 private:
  static constexpr double kEpsilon = std::numeric_limits<float>::epsilon();
  static constexpr double kBeta2Decay = -0.8;     // the second moment forgets 1 - step^kBeta2Decay of itself
  static constexpr double kSmallestScale = 1e-3;  // of a weight's root mean square, which scales its steps
  static constexpr double kClippingThreshold = 1.0;  // for an update's root mean square

  at::Tensor inverse_root(std::size_t i, const at::Tensor& g, double forget) {
    const at::Tensor squares = g.square();
    if (!decays(i)) return means_.tensors[i].lerp_(squares, forget).clamp_min(kEpsilon * kEpsilon).rsqrt_();
    at::Tensor &rows = row_means_.tensors[i], &columns = column_means_.tensors[i];
    rows.lerp_(squares.mean(-1, /*keepdim=*/true), forget);
    columns.lerp_(squares.mean(-2, /*keepdim=*/true), forget);
    const at::Tensor product =
        at::matmul(rows, columns).div_(rows.mean(-2, /*keepdim=*/true).clamp_min_(kEpsilon));
    return product.clamp_min(kEpsilon * kEpsilon).rsqrt_();
  }

  void update(const Update& update) override {
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

  State &row_means_, &column_means_;  // of matrices
  State& means_;                      // of vectors
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const torch::nn::Module& module, const OptimizerOptions& options,
                                          Ranks* ranks) {
  const OptimizerKind kind = options.kind;
  if (options.cautious_weight_decay && kind != OptimizerKind::kAdamW && kind != OptimizerKind::kMuon)
    throw UnfitField(Field{"cautious_weight_decay"}, ": ", Field{"optimizer"}, " ",
                     kOptimizerNames[static_cast<std::size_t>(kind)],
                     " has none; expected adamw or muon, or ", Field{"cautious_weight_decay"}, " false");
  switch (kind) {
    case OptimizerKind::kAdafactor: return std::make_unique<Adafactor>(module, options, ranks);
    case OptimizerKind::kSgd: return std::make_unique<Sgd>(module, options, ranks);
    case OptimizerKind::kLion: return std::make_unique<Lion>(module, options, ranks);
    case OptimizerKind::kMuon: return std::make_unique<Muon>(module, options, ranks);
    default: return std::make_unique<AdamW>(module, options, ranks);
  }
}

}  // namespace zoo
