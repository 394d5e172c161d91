#include "apps/training/updater.h"

#include "tests/support/catch.h"
#include "tests/support/message_of.h"
#include "tests/training/own_module.h"

using zoo::Updater;
using zoo::test::Curve;
using zoo::test::CurveObjective;

namespace {

const auto kNever = [] { return false; };

zoo::UpdaterOptions options(std::int64_t accumulation) {
  zoo::UpdaterOptions options{.accumulation = accumulation};
  options.optimizer.eps = 1e-3;  // a quotient of tiny numbers would show rounding as a step
  return options;
}

at::Tensor weights_of(const Curve& curve) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& weight : curve.parameters()) all.push_back(weight.detach().flatten());
  return at::cat(all);
}

}  // namespace

TEST_CASE("Four micro steps of three rows learn what one of twelve does, and so do uneven ones") {
  Curve whole;
  CurveObjective at_once(whole, zoo::test::kTwelve);
  Updater reference(at_once, options(1), nullptr);
  std::vector<double> losses;
  for (std::int64_t i = 0; i < 10; ++i) {
    reference.run(i, 0.05, kNever);
    losses.push_back(reference.loss().item<double>());
  }
  for (const auto& division : {zoo::test::kFourTimesThree, zoo::test::kUneven}) {
    Curve parts;
    CurveObjective in_parts(parts, division);
    Updater updater(in_parts, options(static_cast<std::int64_t>(division.size())), nullptr);
    for (std::int64_t i = 0; i < 10; ++i) {
      updater.run(i, 0.05, kNever);
      CHECK(updater.loss().item<double>() == Approx(losses[static_cast<std::size_t>(i)]).epsilon(1e-5));
    }
    CHECK((weights_of(parts) - weights_of(whole)).abs().max().item<double>() < 1e-5);
    CHECK(updater.tokens() == 12);
  }
  CHECK(losses.back() < losses.front());
}

TEST_CASE("An overflow in float16 leaves the update out and halves the scale; good updates double it") {
  Curve curve;
  CurveObjective objective(curve, zoo::test::kTwelve);
  zoo::UpdaterOptions half = options(1);
  half.dtype = at::kHalf;
  half.scaler = {.initial_scale = 1024, .growth_interval = 2};
  Updater updater(objective, half, nullptr);
  CHECK(updater.run(0, 0.05, kNever) == Updater::Outcome::kDone);
  const at::Tensor before = weights_of(curve);
  const double step = updater.optimizer().state().back().second.item<double>();

  objective.spoil(1, 1e38);
  CHECK(updater.run(1, 0.05, kNever) == Updater::Outcome::kSkipped);
  CHECK(weights_of(curve).equal(before));
  CHECK(updater.optimizer().state().back().second.item<double>() == step);
  CHECK(updater.scaler()->scale() == 512);

  CHECK(updater.run(2, 0.05, kNever) == Updater::Outcome::kDone);
  CHECK_FALSE(weights_of(curve).equal(before));
  CHECK(updater.scaler()->scale() == 512);
  CHECK(updater.run(3, 0.05, kNever) == Updater::Outcome::kDone);
  CHECK(updater.scaler()->scale() == 1024);
}

TEST_CASE("A gradient that is not finite is named, and the weights stay as they were") {
  Curve curve;
  CurveObjective objective(curve, zoo::test::kTwelve);
  Updater updater(objective, options(1), nullptr);
  updater.run(0, 0.05, kNever);
  const at::Tensor before = weights_of(curve);
  objective.spoil(1, std::numeric_limits<double>::quiet_NaN());
  const std::string message = zoo::test::message_of([&] { updater.run(1, 0.05, kNever); });
  CHECK_THAT(message, Catch::Contains("update 1: the gradient of 'first.weight' is not finite"));
  CHECK(weights_of(curve).equal(before));
}

TEST_CASE("A weight that is not finite is named before the gradients that it spoils") {
  Curve curve;
  CurveObjective objective(curve, zoo::test::kTwelve);
  Updater updater(objective, options(1), nullptr);
  {
    const at::NoGradGuard no_grad;
    curve.second->weight[0][3] = std::numeric_limits<float>::infinity();
  }
  CHECK_THAT(zoo::test::message_of([&] { updater.run(0, 0.05, kNever); }),
             Catch::Contains("the weight 'second.weight'"));
}

TEST_CASE("Gradients that are finite each, but not their norm, are named by the largest") {
  struct Steep : CurveObjective {
    explicit Steep(Curve& curve) : CurveObjective(curve, zoo::test::kTwelve), curve(curve) {}
    zoo::Batch training(std::int64_t) override {
      return {1, 1, [this] { return (curve.second->weight * 3e38).sum(); }};  // the largest float is 3.4e38
    }
    Curve& curve;
  };
  Curve curve;
  Steep objective(curve);
  Updater updater(objective, options(1), nullptr);
  CHECK_THAT(zoo::test::message_of([&] { updater.run(0, 0.05, kNever); }),
             Catch::Contains(
                 "update 0: the norm of the gradients, of which the largest is in 'second.weight', is not "
                 "finite"));
}
