#include "apps/training/records/run_directory.h"

#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace fs = std::filesystem;

namespace {

void fill(const fs::path& directory) { zoo::write_file(directory / "weights", "w"); }

}  // namespace

TEST_CASE("Only the newest step checkpoints stay") {
  const zoo::test::TemporaryDirectory directory;
  zoo::RunDirectory run(directory.path(), 2);
  for (const std::int64_t iteration : {250, 500, 750, 1000}) run.write_step(iteration, fill);
  CHECK(run.steps() == std::vector<std::int64_t>{750, 1000});
  CHECK(run.step_path(1000).filename() == "step-00001000");
  CHECK(fs::exists(run.step_path(1000) / "weights"));
}

TEST_CASE("A checkpoint that cannot be filled leaves the one before it and no rest") {
  const zoo::test::TemporaryDirectory directory;
  zoo::RunDirectory run(directory.path(), 2);
  run.write_step(1, fill);
  CHECK_THROWS_AS(run.write_step(2,
                                 [](const fs::path& path) {
                                   fill(path);
                                   throw zoo::Error("the disk is full");
                                 }),
                  zoo::Error);
  CHECK(run.steps() == std::vector<std::int64_t>{1});
  CHECK(std::distance(fs::directory_iterator(directory / "checkpoints"), fs::directory_iterator()) == 1);
}

TEST_CASE("What a killed run has left half-written is removed and is no checkpoint") {
  const zoo::test::TemporaryDirectory directory;
  const zoo::RunDirectory run(directory.path(), 2);
  fs::create_directories(directory / "checkpoints/.step-00000005.tmp-123");
  fs::create_directories(directory / "checkpoints/step-x");
  CHECK(run.steps().empty());
  CHECK_FALSE(run.holds_run());
  run.clean();
  CHECK_FALSE(fs::exists(directory / "checkpoints/.step-00000005.tmp-123"));
}

TEST_CASE("What a killed run was replacing is put back") {
  const zoo::test::TemporaryDirectory directory;
  const zoo::RunDirectory run(directory.path(), 2);
  fs::create_directories(directory / ".best.tmp-old/of-best");
  fs::create_directories(directory / "checkpoints/.step-00000005.tmp-old/of-step");
  fs::create_directories(directory / "final");
  fs::create_directories(directory / ".final.tmp-old");
  run.clean();
  CHECK(fs::exists(directory / "best/of-best"));
  CHECK(fs::exists(directory / "checkpoints/step-00000005/of-step"));
  CHECK_FALSE(fs::exists(directory / ".final.tmp-old"));
}
