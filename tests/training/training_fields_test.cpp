#include "apps/training/training_fields.h"

#include <algorithm>

#include "tests/support/catch.h"
#include "tests/support/message_of.h"
#include "tests/training/own_module.h"

using Catch::Contains;

namespace {

std::string fault(void (*change)(zoo::TrainerOptions&)) {
  zoo::TrainerOptions options;
  change(options);
  return zoo::test::message_of([&] { zoo::require_ranges(options); });
}

}  // namespace

TEST_CASE("An option out of its range is named with what it may be") {
  CHECK_NOTHROW(zoo::require_ranges({}));
  CHECK(fault([](auto& options) { options.eval_interval = 0; }) ==
        "'eval_interval': expected at least 1, got 0");
  CHECK(fault([](auto& options) { options.eval_iters = 100001; }) ==
        "'eval_iters': expected at least 1 and at most 100000, got 100001");
  CHECK(fault([](auto& options) { options.schedule.peak = 0; }) ==
        "'learning_rate': expected above 0, got 0");
  CHECK_THAT(fault([](auto& options) { options.schedule.peak = NAN; }), Contains("learning_rate"));
  CHECK_THAT(fault([](auto& options) { options.updater.ema_decay = 1; }),
             Contains("'ema_decay': expected at least 0 and at most 0.9999999, got 1"));
  CHECK_THAT(fault([](auto& options) { options.updater.optimizer.beta2 = 1; }), Contains("'beta2'"));
  CHECK_THAT(fault([](auto& options) { options.updater.optimizer.momentum = -0.5; }),
             Contains("'momentum': expected at least 0 and at most 0.999999, got -0.5"));
  CHECK_THAT(fault([](auto& options) { options.schedule.decay_iters = -1; }), Contains("'lr_decay_iters'"));
}

TEST_CASE("A trainer and an updater refuse what is out of range before they begin") {
  zoo::test::Curve curve;
  zoo::test::CurveObjective objective(curve, {{0, 4}});
  CHECK_THAT(zoo::test::message_of([&] { zoo::Updater(objective, {.accumulation = 0}, nullptr); }),
             Contains("'gradient_accumulation_steps': expected at least 1 and at most 4096, got 0"));
  CHECK_THAT(zoo::test::message_of(
                 [&] { zoo::Trainer(objective, zoo::RunDirectory("unused", 0), {}, {.log_interval = 0}); }),
             Contains("'log_interval': expected at least 1, got 0"));
}

TEST_CASE("The description reaches each option's own variable") {
  zoo::TrainerOptions options;
  const auto fields = zoo::training_fields(options);
  std::vector<std::string_view> names;
  for (const zoo::TrainingField& field : fields) names.push_back(field.name);
  std::ranges::sort(names);
  CHECK(std::ranges::adjacent_find(names) == names.end());
  const auto field = [&](std::string_view name) {
    return *std::ranges::find(fields, name, &zoo::TrainingField::name);
  };
  *std::get<std::optional<double>*>(field("min_lr").member) = 0.25;
  CHECK(options.schedule.floor == 0.25);
  *std::get<zoo::OptimizerKind*>(field("optimizer").member) = zoo::OptimizerKind::kMuon;
  CHECK(options.updater.optimizer.kind == zoo::OptimizerKind::kMuon);
  // A resumed run may go on for longer, but its optimizer's state is of its optimizer.
  CHECK(field("max_iters").resumed == zoo::Resumed::kMayChange);
  CHECK(field("optimizer").resumed == zoo::Resumed::kKept);
  CHECK(field("lr_schedule").choices.at(static_cast<std::size_t>(zoo::ScheduleKind::kWsd)) == "wsd");
}
