#include "apps/training/optimizers/schedule.h"

#include <cmath>

#include "apps/training/training_fields.h"
#include "data/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/message_of.h"

using zoo::Schedule;
using zoo::ScheduleKind;

namespace {

// warm-up 4, decay until 14: iteration 9 is half way.
Schedule schedule(ScheduleKind kind) {
  return {.kind = kind, .peak = 1.0, .floor = 0.2, .warmup_iters = 4, .decay_iters = 14};
}

}  // namespace

TEST_CASE("The warm-up rises by nanoGPT's rule, (i + 1) / (warmup + 1)") {
  for (const auto kind : {ScheduleKind::kConstant, ScheduleKind::kLinear, ScheduleKind::kCosine}) {
    CHECK(schedule(kind).at(0) == Approx(0.2));
    CHECK(schedule(kind).at(3) == Approx(0.8));
    CHECK(schedule(kind).at(4) == Approx(1.0));
  }
}

TEST_CASE("The learning rate falls by a straight line or half a cosine to the floor and stays there") {
  CHECK(schedule(ScheduleKind::kLinear).at(9) == Approx(0.6));
  CHECK(schedule(ScheduleKind::kCosine).at(9) == Approx(0.6));
  // A quarter of the way: 1 - 0.25, and (1 + cos(pi / 4)) / 2 = 0.8535534, of the 0.8 between peak and floor.
  const Schedule linear{
      .kind = ScheduleKind::kLinear, .peak = 1.0, .floor = 0.2, .warmup_iters = 0, .decay_iters = 4};
  Schedule cosine = linear;
  cosine.kind = ScheduleKind::kCosine;
  CHECK(linear.at(1) == Approx(0.2 + 0.8 * 0.75));
  CHECK(cosine.at(1) == Approx(0.2 + 0.8 * 0.8535534));
  for (const auto kind : {ScheduleKind::kLinear, ScheduleKind::kCosine}) {
    CHECK(schedule(kind).at(14) == Approx(0.2));
    CHECK(schedule(kind).at(1000) == Approx(0.2));
  }
  CHECK(schedule(ScheduleKind::kConstant).at(1000) == Approx(1.0));
}

TEST_CASE("The inverse square root is 1 where the warm-up ends and halves at four times its length") {
  const Schedule warm{.kind = ScheduleKind::kInverseSqrt, .peak = 1.0, .floor = 0.2, .warmup_iters = 4};
  CHECK(warm.at(4) == Approx(1.0));
  CHECK(warm.at(16) == Approx(0.5));
  CHECK(warm.at(400) == Approx(0.2));  // 0.1 is below the floor
  const Schedule cold{.kind = ScheduleKind::kInverseSqrt, .peak = 1.0, .floor = 0, .warmup_iters = 0};
  CHECK(cold.at(0) == Approx(1.0));
  CHECK(cold.at(30000) == Approx(0.5));
}

TEST_CASE("Warm-up, stable, decay: the peak until the cool-down, then a straight line") {
  Schedule wsd = schedule(ScheduleKind::kWsd);
  wsd.cooldown_iters = 4;
  CHECK(wsd.at(4) == Approx(1.0));
  CHECK(wsd.at(10) == Approx(1.0));
  CHECK(wsd.at(12) == Approx(0.6));
  CHECK(wsd.at(14) == Approx(0.2));
}

TEST_CASE("Restarts fall in equal stretches, each from the peak") {
  Schedule twice = schedule(ScheduleKind::kLinear);
  twice.cycles = 2;
  CHECK(twice.at(4) == Approx(1.0));
  CHECK(twice.at(8) == Approx(0.36));  // four fifths of the way to 0.2
  CHECK(twice.at(9) == Approx(1.0));
  CHECK(twice.at(13) == Approx(0.36));
  CHECK(twice.at(14) == Approx(0.2));
}

TEST_CASE("A schedule that does not decay keeps its peak, without a warm-up") {
  Schedule flat = schedule(ScheduleKind::kCosine);
  flat.decays = false;
  for (const std::int64_t iteration : {0, 3, 9, 20}) CHECK(flat.at(iteration) == 1.0);
}

TEST_CASE("Without a floor the rate falls to a tenth of its peak, at most 1e-4") {
  const auto end = [](double peak) { return Schedule{.peak = peak, .decay_iters = 10}.at(10); };
  CHECK(end(1e-5) == Approx(1e-6));
  CHECK(end(1e-3) == Approx(1e-4));
  CHECK(end(3e-3) == Approx(1e-4));
  CHECK(zoo::test::message_of([] { zoo::require_ranges({.schedule = {.peak = 1e-5, .floor = 1e-4}}); }) ==
        "'min_lr': 0.0001 is above the learning_rate, 1e-05");
  CHECK_NOTHROW(zoo::require_ranges({.schedule = {.peak = 1e-5, .floor = 1e-4, .decays = false}}));
}

TEST_CASE("A trapezoid is another name of wsd") {
  Schedule wsd{.kind = ScheduleKind::kWsd, .decay_iters = 30, .cooldown_iters = 7}, trapezoid = wsd;
  trapezoid.kind = ScheduleKind::kTrapezoid;
  for (int i = 0; i < 32; ++i) CHECK(trapezoid.at(i) == wsd.at(i));
}

TEST_CASE("The share of the weight decay is whole, or falls to nothing at decay_iters") {
  Schedule schedule{.peak = 3, .floor = 2, .warmup_iters = 5, .decay_iters = 8};
  CHECK(schedule.weight_decay_share(0) == 1);
  CHECK(schedule.weight_decay_share(9) == 1);
  schedule.weight_decay = ScheduleKind::kLinear;
  CHECK(schedule.weight_decay_share(0) == 1);
  CHECK(schedule.weight_decay_share(6) == Approx(0.25));
  CHECK(schedule.weight_decay_share(8) == 0);
  CHECK(schedule.weight_decay_share(9) == 0);
  schedule.weight_decay = ScheduleKind::kCosine;
  CHECK(schedule.weight_decay_share(2) == Approx(0.5 * (1 + std::sqrt(0.5))));
  schedule.decays = false;  // of the learning rate
  CHECK(schedule.weight_decay_share(4) == Approx(0.5));
}

TEST_CASE("Without cooldown_iters the last tenth of wsd falls") {
  const Schedule wsd{.kind = ScheduleKind::kWsd, .peak = 1.0, .floor = 0, .decay_iters = 100};
  CHECK(wsd.at(90) == Approx(1.0));
  CHECK(wsd.at(95) == Approx(0.5));
  CHECK(wsd.at(100) == 0.0);
}
