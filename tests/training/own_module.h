#pragma once

#include <ATen/ops/arange.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/tanh.h>

#include "apps/training/objective.h"
#include "models/layers/linear.h"

namespace zoo::test {

/// A module that the zoo knows nothing of: two layers with dropout between them.
class Curve : public torch::nn::Module {
 public:
  explicit Curve(double dropout = 0) : dropout_(dropout) {
    first = register_module("first", Linear(1, 8));
    second = register_module("second", Linear(8, 1));
    const at::NoGradGuard no_grad;
    std::int64_t seed = 0;
    for (at::Tensor& weight : parameters())
      weight.copy_(at::arange(weight.numel()).add(++seed).mul(0.7).sin().view_as(weight));
  }

  at::Tensor forward(const at::Tensor& x) {
    return second(at::dropout(at::tanh(first(x)), dropout_, is_training() && dropout_ > 0));
  }

  Linear first{nullptr}, second{nullptr};

 private:
  double dropout_;
};

/// Learns y = sin(x) from the points [first, first + count) of each micro step.
class CurveObjective : public Objective {
 public:
  struct Points {
    std::int64_t first, count;
  };
  using Division = std::vector<Points>;  // of the micro steps of an update

  CurveObjective(Curve& curve, Division division) : curve_(curve), division_(std::move(division)) {}

  torch::nn::Module& module() override { return curve_; }
  Batch training(std::int64_t micro_step) override {
    const auto steps = static_cast<std::int64_t>(division_.size());
    Points points = division_[static_cast<std::size_t>(micro_step % steps)];
    points.first += micro_step / steps * 100;  // other points each time
    return batch(points, micro_step);
  }
  Batch evaluation(Split, std::int64_t index) override { return batch({1000 + 20 * index, 20}, -1); }

  /// The loss of this micro step is multiplied by `factor`.
  void spoil(std::int64_t micro_step, double factor) {
    spoilt_ = micro_step;
    factor_ = factor;
  }

 private:
  Batch batch(Points points, std::int64_t micro_step) {
    return {
        static_cast<double>(points.count), points.count, [this, points, micro_step] {
          const at::Tensor x =
              at::arange(points.first, points.first + points.count, at::kFloat).mul(0.37).cos().view({-1, 1});
          const at::Tensor loss = (curve_.forward(x) - x.sin()).to(at::kFloat).square().mean();
          return micro_step == spoilt_ ? loss * factor_ : loss;
        }};
  }

  Curve& curve_;
  Division division_;
  std::int64_t spoilt_ = -2;
  double factor_ = 1;
};

inline const CurveObjective::Division kTwelve{{0, 12}};
inline const CurveObjective::Division kFourTimesThree{{0, 3}, {3, 3}, {6, 3}, {9, 3}};
inline const CurveObjective::Division kUneven{{0, 1}, {1, 7}, {8, 4}};

}  // namespace zoo::test
