#include "apps/training/trainer.h"

#include <cmath>
#include <numbers>
#include <sstream>

#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/own_module.h"

using zoo::Trainer;
using zoo::test::Curve;
using zoo::test::CurveObjective;

namespace {

zoo::TrainerOptions options() {
  zoo::TrainerOptions options;
  options.max_iters = 30;
  options.eval_interval = 10;
  options.eval_iters = 2;
  options.log_interval = 1;
  options.schedule = {.kind = zoo::ScheduleKind::kCosine, .peak = 0.05, .floor = 0.001, .decay_iters = 30};
  return options;
}

class StopAfter : public zoo::TrainingObserver {
 public:
  explicit StopAfter(std::int64_t questions) : left_(questions) {}
  bool stop() override { return --left_ == 0; }

 private:
  std::int64_t left_;
};

Trainer::SaveModel saver(const Curve& curve) {
  return [&curve](const std::filesystem::path& directory) {
    zoo::NamedTensors weights;
    for (const auto& entry : curve.named_parameters())
      weights.emplace_back(entry.key(), entry.value().detach());
    zoo::write_safetensors(directory / "model.safetensors", weights);
  };
}

void load(Curve& curve, const std::filesystem::path& directory) {
  const at::NoGradGuard no_grad;
  const zoo::SafetensorsFile file(directory / "model.safetensors");
  for (auto& entry : curve.named_parameters()) entry.value().copy_(file.tensor(entry.key()));
}

std::string final_weights(const std::filesystem::path& run) {
  return zoo::read_file(run / "final/model.safetensors");
}

}  // namespace

TEST_CASE("Norms of a layer: its gradients, its weights after the update and what the update changed") {
  // SGD changes a weight of 3, 4 with a gradient of 6, 8 by a tenth of it, to 2.4, 3.2.
  at::Tensor a = at::tensor({3.0F}).requires_grad_(), b = at::tensor({4.0F}).requires_grad_();
  const at::Tensor c = at::zeros({1}).requires_grad_();
  const zoo::NamedTensors parameters{{"stack.blocks.7.out.weight", a},
                                     {"stack.final_norm.weight", c},
                                     {"stack.blocks.7.norm.bias", b},
                                     {"lora.stack_blocks_12_attention_out_a", c}};
  a.mutable_grad() = at::tensor({6.0F});
  b.mutable_grad() = at::tensor({8.0F});
  const zoo::LayerMeasure measure(parameters);
  {
    const at::NoGradGuard no_grad;
    a.sub_(0.1F * a.grad());
    b.sub_(0.1F * b.grad());
  }
  const std::vector<zoo::LayerNorms> layers = measure.norms();
  REQUIRE(layers.size() == 3);
  CHECK(layers[0].layer == "stack.blocks.7");
  CHECK(std::abs(layers[0].gradient - 10) < 1e-6);
  CHECK(std::abs(layers[0].weight - 4) < 1e-6);
  CHECK(std::abs(layers[0].update_ratio() - 0.25) < 1e-6);
  CHECK(layers[1].layer == "stack.final_norm");
  CHECK((layers[1].gradient == 0 && layers[1].update_ratio() == 0));
  CHECK(layers[2].layer == "lora.stack_blocks_12");
}

TEST_CASE("A module of another program is trained by an objective of its own") {
  const zoo::test::TemporaryDirectory directory;
  Curve curve;
  CurveObjective objective(curve, zoo::test::kTwelve);
  zoo::TrainerOptions longer = options();
  longer.max_iters = 300;
  longer.schedule.decay_iters = 300;
  longer.eval_interval = 100;
  Trainer trainer(objective, zoo::RunDirectory(directory / "runs/new", 2), saver(curve), longer);
  zoo::TrainingObserver nobody;
  const auto result = trainer.train(nobody);
  CHECK(result.finished);
  CHECK(result.final_val_loss < 0.01);  // that of the mean alone is 0.36
  CHECK(std::filesystem::exists(directory / "runs/new/best/model.safetensors"));
  CHECK(zoo::RunDirectory(directory / "runs/new", 2).steps() == std::vector<std::int64_t>{200, 300});
}

TEST_CASE("Stopped in the middle of an accumulation, a run goes on bit for bit, whatever it keeps") {
  using zoo::OptimizerKind;
  const auto [kind, dtype] =
      GENERATE(std::tuple(OptimizerKind::kAdamW, at::kHalf), std::pair(OptimizerKind::kAdafactor, at::kFloat),
               std::tuple(OptimizerKind::kSgd, at::kFloat), std::pair(OptimizerKind::kLion, at::kHalf));
  zoo::TrainerOptions all = options();
  all.updater = {.accumulation = 4, .dtype = dtype, .ema_decay = 0.9};
  all.updater.optimizer.kind = kind;
  all.updater.scaler = {.initial_scale = 64, .growth_interval = 7};
  zoo::TrainingObserver nobody;

  const zoo::test::TemporaryDirectory whole_run, stopped_run;
  {
    Curve curve(0.2);
    CurveObjective objective(curve, zoo::test::kFourTimesThree);
    Trainer(objective, zoo::RunDirectory(whole_run.path(), 2), saver(curve), all).train(nobody);
  }
  const zoo::RunDirectory run(stopped_run.path(), 2);
  // The trainer asks after every micro step, 4 questions an update, and after the 4 batches of an evaluation,
  // before update 0 and every tenth. 55 is after the third micro step of update 11, 18 after the first of
  // update 16, 17 in the evaluation before update 20.
  for (const std::int64_t questions : {55, 18, 17, 0}) {
    Curve curve(0.2);
    CurveObjective objective(curve, zoo::test::kFourTimesThree);
    Trainer trainer(objective, run, saver(curve), all);
    if (const auto steps = run.steps(); !steps.empty()) {
      load(curve, run.step_path(steps.back()));
      trainer.resume(steps.back());
    }
    StopAfter observer(questions);
    const auto result = trainer.train(observer);
    CHECK(result.finished == (questions == 0));
    if (questions == 17) CHECK(run.steps().back() == 20);
    if (questions == 55) CHECK(std::filesystem::exists(run.step_path(11) / "gradients.safetensors"));
  }
  CHECK(final_weights(whole_run.path()) == final_weights(stopped_run.path()));
}

TEST_CASE("A run ends early when evaluations have brought nothing better for so long") {
  const zoo::test::TemporaryDirectory directory;
  Curve curve;
  CurveObjective objective(curve, zoo::test::kTwelve);
  zoo::TrainerOptions patient = options();
  patient.max_iters = 1000;
  patient.eval_interval = 1;
  patient.patience = 3;
  patient.schedule = {.kind = zoo::ScheduleKind::kConstant, .peak = 3.0};  // too high to learn anything
  Trainer trainer(objective, zoo::RunDirectory(directory.path(), 2), saver(curve), patient);
  zoo::TrainingObserver nobody;
  const auto result = trainer.train(nobody);
  CHECK(result.finished);
  CHECK(result.iterations < 1000);
  CHECK(result.final_val_loss > result.best_val_loss);
  CHECK(std::filesystem::exists(directory / "final/model.safetensors"));

  // Killed after the checkpoint of an evaluation, a run repeats that evaluation, which is not counted again.
  const zoo::RunDirectory run(directory.path(), 2);
  const std::int64_t before = result.iterations - 1;
  load(curve, run.step_path(before));
  Trainer resumed(objective, run, saver(curve), patient);
  resumed.resume(before);
  CHECK(resumed.train(nobody).iterations == result.iterations);
}

TEST_CASE("Of an update that a stop has split no figures are logged, and of one without targets no loss") {
  struct Counting : CurveObjective {
    using CurveObjective::CurveObjective;
    zoo::Batch training(std::int64_t micro_step) override {
      ++count;
      return CurveObjective::training(micro_step);
    }
    std::vector<zoo::Score> take_training_scores() override { return {{"drawn", std::exchange(count, 0)}}; }
    double count = 0;
  };
  const auto rows = [](const std::filesystem::path& run) {
    std::vector<nlohmann::json> rows;
    std::istringstream lines(zoo::read_file(run / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) rows.push_back(nlohmann::json::parse(line));
    return rows;
  };
  const zoo::test::TemporaryDirectory directory;
  const zoo::RunDirectory run(directory / "split", 2), other(directory / "none", 2);
  zoo::TrainerOptions all = options();
  all.updater = {.accumulation = 4};
  for (const std::int64_t questions : {55, 0}) {  // after the third micro step of update 11, as above
    Curve curve;
    Counting objective(curve, zoo::test::kFourTimesThree);
    Trainer trainer(objective, run, saver(curve), all);
    if (questions == 0) load(curve, run.step_path(11));
    if (questions == 0) trainer.resume(11);
    StopAfter observer(questions);
    trainer.train(observer);
  }
  for (const nlohmann::json& row : rows(run.path()))
    CHECK(row.contains("train_drawn") == (row["iter"] != 11 && row["iter"] != 30));
  Curve curve;
  CurveObjective nothing(curve, {{0, 0}});
  zoo::TrainingObserver nobody;
  Trainer(nothing, other, saver(curve), options()).train(nobody);
  for (const nlohmann::json& row : rows(other.path())) CHECK(row["train_loss"].is_null());
}

TEST_CASE("A schedule without an end of its decay ends with the training") {
  const zoo::test::TemporaryDirectory directory;
  Curve curve;
  CurveObjective objective(curve, zoo::test::kTwelve);
  zoo::TrainerOptions open = options();
  open.schedule.decay_iters.reset();
  struct LastRate : zoo::TrainingObserver {
    double rate = 0;
    void on_metrics(const zoo::Metrics& metrics) override { rate = metrics.lr; }
  } observer;
  Trainer(objective, zoo::RunDirectory(directory.path(), 2), saver(curve), open).train(observer);
  // Half a cosine from 0.05 to 0.001: at update 29 of 30.
  CHECK(observer.rate == Approx(0.001 + 0.049 * 0.5 * (1 + std::cos(std::numbers::pi * 29 / 30))));
}
