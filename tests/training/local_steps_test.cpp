#include "apps/training/parallel/local_steps.h"

#include "apps/training/trainer.h"
#include "data/base/atomic_file.h"
#include "tests/support/catch.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/own_module.h"
#include "tests/training/thread_ranks.h"

using zoo::Trainer;
using zoo::test::Curve;
using zoo::test::CurveObjective;
using zoo::test::TemporaryDirectory;
using zoo::test::ThreadRanks;

namespace {

namespace fs = std::filesystem;

// Those of tests/golden/make_local_steps.py.
zoo::TrainerOptions options() {
  zoo::TrainerOptions options;
  options.max_iters = 12;
  options.eval_interval = 4;
  options.eval_iters = 1;
  options.schedule = {.kind = zoo::ScheduleKind::kConstant, .peak = 0.05};
  options.updater.local = {.steps = 4, .learning_rate = 0.6, .momentum = 0.8};
  options.updater.optimizer = {
      .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1, .grad_clip = 0.2};
  return options;
}

void save(const Curve& curve, const fs::path& directory) {
  zoo::NamedTensors weights;
  for (const auto& entry : curve.named_parameters())
    weights.emplace_back(entry.key(), entry.value().detach());
  zoo::write_safetensors(directory / "model.safetensors", weights);
}

// Asked after each batch of an evaluation, of which each split has one, and after each update.
struct StopAt : zoo::TrainingObserver {
  explicit StopAt(std::int64_t question) : left(question) {}
  bool stop() override { return --left == 0; }
  std::int64_t left;
};

// Trains from the run's last checkpoint. Rank 1 asks for the end at this question; 0: never.
void train(const fs::path& folder, std::int64_t question, std::int64_t ranks = 2,
           const zoo::TrainerOptions& given = options()) {
  zoo::test::run_ranks(ranks, [&](ThreadRanks& rank) {
    Curve curve;
    CurveObjective objective(curve, {{6 * rank.rank(), 6}});
    zoo::TrainerOptions own = given;
    own.ranks = &rank;
    const zoo::RunDirectory run(folder, 0);
    const auto steps = run.steps();
    if (!steps.empty()) {
      const at::NoGradGuard no_grad;
      const zoo::SafetensorsFile file(run.step_path(steps.back()) / "model.safetensors");
      for (auto& entry : curve.named_parameters()) entry.value().copy_(file.tensor(entry.key()));
    }
    Trainer trainer(
        objective, run, [&](const fs::path& to) { save(curve, to); }, own);
    if (!steps.empty()) trainer.resume(steps.back());
    StopAt observer(rank.rank() == 1 ? question : 0);
    trainer.train(observer);
  });
}

// The largest difference of a checkpoint's tensors, named with the prefix, from the golden ones with the
// suffix.
double difference(const fs::path& path, const std::string& prefix, const std::string& suffix) {
  const zoo::SafetensorsFile golden(ZOO_SOURCE_DIR "/tests/golden/local_steps.safetensors"), file(path);
  double largest = 0;
  for (const char* name : {"first.weight", "first.bias", "second.weight", "second.bias"})
    largest = std::max(largest, (file.tensor(prefix + name).to(at::kDouble) - golden.tensor(name + suffix))
                                    .abs()
                                    .max()
                                    .item<double>());
  return largest;
}

}  // namespace

TEST_CASE("Two ranks with local steps follow DiLoCo in PyTorch, round for round") {
  const TemporaryDirectory folder;
  train(folder.path(), 0);
  const zoo::RunDirectory run(folder.path(), 0);
  CHECK(run.steps() == std::vector<std::int64_t>{4, 8, 12});
  for (std::int64_t round = 1; round <= 3; ++round)
    CHECK(difference(run.step_path(4 * round) / "model.safetensors", "", "." + std::to_string(round)) < 1e-6);
  CHECK(difference(folder / "final/model.safetensors", "", ".3") < 1e-6);
}

TEST_CASE("Stopped inside of a round or at its end, local steps go on bit for bit") {
  const TemporaryDirectory whole, stopped;
  train(whole.path(), 0);
  const zoo::RunDirectory run(stopped.path(), 0);
  // Two questions of evaluations and four of updates a round; the ranks end at the question after the one
  // with the answer: 11 is before the last update of round 2, 15 before the second of round 3.
  train(stopped.path(), 11);
  CHECK(run.steps() == std::vector<std::int64_t>{4, 8});
  train(stopped.path(), 3);  // after the 2 of the evaluation that is repeated
  CHECK(run.steps() == std::vector<std::int64_t>{4, 8, 10});
  const fs::path inside = run.step_path(10);
  CHECK(difference(inside / "model.safetensors", "", ".2") < 1e-6);
  CHECK(difference(inside / "optimizer.safetensors", "local.", ".local.0") < 1e-6);
  CHECK(difference(inside / "optimizer-1.safetensors", "local.", ".local.1") < 1e-6);
  for (const std::int64_t ranks : {1, 3})
    CHECK(zoo::test::message_of([&] { train(stopped.path(), 0, ranks); }).find("another number of ranks") !=
          std::string::npos);
  train(stopped.path(), 0);
  CHECK(zoo::read_file(whole / "final/model.safetensors") ==
        zoo::read_file(stopped / "final/model.safetensors"));
}

TEST_CASE("What does not fit local steps is refused by name") {
  const auto message = [](const auto& change) {
    zoo::TrainerOptions changed = options();
    change(changed);
    return zoo::test::message_of([&] { zoo::require_rounds(changed); });
  };
  using Options = zoo::TrainerOptions;
  zoo::require_rounds(options());
  CHECK(message([](Options& o) { o.max_iters = 10; }).find("'max_iters' 10") == 0);
  CHECK(message([](Options& o) { o.eval_interval = 6; }).find("'eval_interval' 6") == 0);
  CHECK(message([](Options& o) { o.updater.ema_decay = 0.9; }).find("'ema_decay'") == 0);
  CHECK(message([](Options& o) { o.updater.optimizer_shares = 2; }).find("'shard_optimizer'") == 0);
}
