#include "data/base/processors.h"

#include <thread>

#include "tests/data/support.h"
#include "tests/support/temporary_directory.h"

namespace fs = std::filesystem;
using zoo::processor_quota;
using zoo::test::TemporaryDirectory;
using zoo::test::write_bytes;

TEST_CASE("the quota of a control group is the least of its own and those above") {
  const TemporaryDirectory folder;
  const fs::path groups = write_bytes(folder / "groups", "1:name=systemd:/\n0::/user/one\n");
  fs::create_directories(folder / "user/one");
  CHECK_FALSE(processor_quota(groups, folder.path()));
  write_bytes(folder / "user/one/cpu.max", "max 100000\n");
  CHECK_FALSE(processor_quota(groups, folder.path()));
  write_bytes(folder / "user/one/cpu.max", "250000 100000\n");
  CHECK(processor_quota(groups, folder.path()) == 2.5);
  write_bytes(folder / "cpu.max", "75000 50000\n");
  CHECK(processor_quota(groups, folder.path()) == 1.5);
  CHECK_FALSE(processor_quota(folder / "none", folder.path()));
}

TEST_CASE("a container of version 1 sees its own group at the root") {
  const TemporaryDirectory folder;
  const fs::path groups =
      write_bytes(folder / "groups", "5:cpuset:/docker/0af\n4:cpu,cpuacct:/docker/0af\n0::/system.slice\n");
  fs::create_directories(folder / "cpu");
  fs::create_directories(folder / "cpuset");
  write_bytes(folder / "cpuset/cpu.cfs_quota_us", "100\n");
  write_bytes(folder / "cpuset/cpu.cfs_period_us", "100\n");
  write_bytes(folder / "cpu/cpu.cfs_quota_us", "-1\n");
  write_bytes(folder / "cpu/cpu.cfs_period_us", "100000\n");
  CHECK_FALSE(processor_quota(groups, folder.path()));
  write_bytes(folder / "cpu/cpu.cfs_quota_us", "400000\n");
  CHECK(processor_quota(groups, folder.path()) == 4);
}

TEST_CASE("a process can use at least one processor, and no more than there are") {
  CHECK(zoo::usable_processors() >= 1);
  CHECK(zoo::usable_processors() <= std::max(1U, std::thread::hardware_concurrency()));
}
