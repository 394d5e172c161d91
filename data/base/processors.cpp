#include "data/base/processors.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>

namespace zoo {
namespace {

namespace fs = std::filesystem;

std::optional<double> quota_of(const fs::path& group) {
  double quota = 0, period = 0;
  const bool second =
      static_cast<bool>(std::ifstream(group / "cpu.max") >> quota >> period);  // not for "max"
  const bool first = !second && std::ifstream(group / "cpu.cfs_quota_us") >> quota &&
                     std::ifstream(group / "cpu.cfs_period_us") >> period;
  if ((!first && !second) || quota <= 0 || period <= 0) return std::nullopt;  // -1: none
  return quota / period;
}

}  // namespace

std::int64_t usable_processors() {
  const std::int64_t all = std::max(1U, std::thread::hardware_concurrency());
  const std::optional<double> quota = processor_quota("/proc/self/cgroup", "/sys/fs/cgroup");
  return quota ? std::min(all, static_cast<std::int64_t>(std::ceil(*quota))) : all;
}

std::optional<double> processor_quota(const fs::path& groups, const fs::path& root) {
  std::optional<double> least;
  std::ifstream lines(groups);
  // NUMBER:CONTROLLERS:/GROUP; version 2 names no controllers.
  for (std::string line; std::getline(lines, line);) {
    const std::size_t names = line.find(':') + 1, path = line.find(':', names);
    if (names == 0 || path == std::string::npos) continue;
    const std::string controllers = "," + line.substr(names, path - names) + ",";
    if (controllers != ",," && controllers.find(",cpu,") == std::string::npos) continue;
    const fs::path place = controllers == ",," ? root : root / "cpu";
    fs::path group = fs::path(line.substr(path + 1)).relative_path();
    for (bool more = true; more; group = group.parent_path()) {
      if (const auto quota = quota_of(place / group)) least = std::min(least.value_or(*quota), *quota);
      more = !group.empty();
    }
  }
  return least;
}

}  // namespace zoo
