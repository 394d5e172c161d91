#include <cmath>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <torch/csrc/autograd/autograd.h>

#include "models/heads/head_parts.h"
#include "models/kernels/training/linear.h"
#include "tests/support/catch.h"
#include "tests/support/instruction_sets.h"

namespace {

struct Inputs {
  at::Tensor x, weight, bias, targets;

  Inputs(std::int64_t rows, std::int64_t width, std::int64_t classes)
      : x(at::randn({rows, width}).requires_grad_()),
        weight(at::randn({classes, width}).requires_grad_()),
        bias(at::randn({classes}).requires_grad_()),
        targets(at::randint(classes, {rows}, at::kLong)) {}
};

double loss_error(const at::Tensor& actual, const at::Tensor& expected) {
  return ((actual.to(at::kDouble) - expected).abs().max() / expected.abs().max()).item<double>();
}

}  // namespace

TEST_CASE("The loss over a vocabulary equals LibTorch's in double precision, gradients too") {
  ZOO_NEEDS_TRAINING_KERNELS;
  at::manual_seed(1);
  // The last is made in several parts; 1 class leaves nothing to learn.
  const Inputs cases[] = {{16, 3, 5}, {17, 40, 65}, {100, 16, 4097}, {18, 8, 1}, {500, 4, 30011}};
  for (const Inputs& in : cases) {
    REQUIRE(zoo::kernels::has_fast_linear(in.x, in.weight));
    for (const double smoothing : {0.0, 0.1}) {
      INFO(in.x.sizes() << " onto " << in.weight.size(0) << ", smoothing " << smoothing);
      const at::Tensor actual =
          zoo::kernels::vocabulary_loss(in.x, in.weight, in.bias, in.targets, smoothing);
      const auto wide = [](const at::Tensor& x) { return x.detach().to(at::kDouble).requires_grad_(); };
      const at::Tensor x = wide(in.x), weight = wide(in.weight), bias = wide(in.bias);
      const at::Tensor expected = at::cross_entropy_loss(at::linear(x, weight, bias), in.targets, {},
                                                         at::Reduction::Mean, -100, smoothing);
      CHECK(actual.item<double>() == Approx(expected.item<double>()).epsilon(2e-6).margin(1e-6));
      if (in.weight.size(0) == 1) continue;
      // A factor, as accumulated batches have one.
      const auto gradients = torch::autograd::grad({actual * 0.25}, {in.x, in.weight, in.bias});
      const auto wide_gradients = torch::autograd::grad({expected * 0.25}, {x, weight, bias});
      for (std::size_t i = 0; i < 3; ++i) {
        INFO("gradient " << i);
        CHECK(loss_error(gradients[i], wide_gradients[i]) < 1e-5);
      }
    }
  }
}

TEST_CASE("A vocabulary's head leaves out what is not to be learnt") {
  at::manual_seed(2);
  const Inputs in(60, 12, 33);
  at::Tensor labels = in.targets.clone().view({3, 20});
  labels.slice(1, 15).fill_(-100);
  const at::Tensor hidden = in.x.view({3, 20, 12});
  const zoo::HeadParts head{.weight = in.weight, .bias = in.bias};
  const at::Tensor expected = zoo::cross_entropy(head.logits(hidden), labels, {});
  CHECK(head.vocabulary_loss(hidden, labels, {}).item<double>() ==
        Approx(expected.item<double>()).epsilon(1e-6));
  const zoo::LossOptions smooth{.label_smoothing = 0.2};
  CHECK(head.vocabulary_loss(hidden, labels, smooth).item<double>() ==
        Approx(zoo::cross_entropy(head.logits(hidden), labels, smooth).item<double>()).epsilon(1e-6));
  labels.fill_(-100);
  CHECK(std::isnan(
      head.vocabulary_loss(hidden, labels, {}).item<double>()));  // as the mean of nothing is in LibTorch
}

TEST_CASE("A loss over a vocabulary is not a number where a logit is none") {
  ZOO_NEEDS_TRAINING_KERNELS;
  at::manual_seed(3);
  const Inputs in(20, 6, 50);
  REQUIRE(zoo::kernels::has_fast_linear(in.x, in.weight));
  const auto loss_at = [&](float value) {
    const at::Tensor x = in.x.detach().clone();
    x[3][2] = value;
    return zoo::kernels::vocabulary_loss(x, in.weight, in.bias, in.targets, 0).item<double>();
  };
  CHECK(std::isnan(loss_at(std::numeric_limits<float>::quiet_NaN())));
  CHECK(!std::isfinite(loss_at(std::numeric_limits<float>::infinity())));
  CHECK(std::isfinite(loss_at(1e4F)));
}

TEST_CASE("A loss over a vocabulary names targets that are not in it") {
  const Inputs in(20, 6, 50);
  const at::Tensor targets = in.targets.clone();
  targets[4] = 50;
  CHECK_THROWS_WITH(zoo::kernels::vocabulary_loss(in.x, in.weight, in.bias, targets, 0),
                    Catch::Contains("targets must be in [0, 50)"));
}
