#include "apps/training/records/metrics_log.h"

#include "data/base/atomic_file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace {

std::string iterations(const std::filesystem::path& path) {
  std::string found;
  const std::string text = zoo::read_file(path);
  for (std::size_t at = text.find("\"iter\":"); at != std::string::npos;
       at = text.find("\"iter\":", at + 1)) {
    found += text.substr(at + 7, text.find(',', at) - at - 7) + " ";
  }
  return found;
}

}  // namespace

TEST_CASE("A resumed log keeps the lines before its iteration and drops a line that a kill has cut") {
  const zoo::test::TemporaryDirectory directory;
  const auto path = directory / "metrics.jsonl";
  zoo::write_file(path, "{\"iter\":0,\"train_loss\":1}\n{\"iter\":10,\"train_loss\":1}\n{\"iter\":20,\"tra");
  {
    zoo::MetricsLog log(path, 10);
    log.write({.iter = 10, .train_loss = 2, .lr = 0.1});
  }
  CHECK(iterations(path) == "0 10 ");
  CHECK(zoo::read_file(path).find("\"val_loss\"") == std::string::npos);
  zoo::MetricsLog fresh(path, 0);
  CHECK(zoo::read_file(path).empty());
}
