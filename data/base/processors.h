#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace zoo {

/// Processors that this process can use at once: those on which it may run, or, if that is less, its control
/// group's share of time (`docker run --cpus`) rounded up. At least 1.
std::int64_t usable_processors();

/// Processors that a quota leaves to the groups in `groups`, a file such as /proc/self/cgroup, and to those
/// above them; `root` is version 2's directory, with version 1's controllers below. Nothing without a quota.
std::optional<double> processor_quota(const std::filesystem::path& groups, const std::filesystem::path& root);

}  // namespace zoo
