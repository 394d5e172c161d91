#include "apps/training/records/run_directory.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>

#include "data/base/atomic_file.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStepPrefix = "step-";

}  // namespace

RunDirectory::RunDirectory(fs::path path, std::int64_t keep) : path_(std::move(path)), keep_(keep) {}

fs::path RunDirectory::step_path(std::int64_t iteration) const {
  std::string digits = std::to_string(iteration);
  if (digits.size() < 8) digits.insert(0, 8 - digits.size(), '0');
  return path_ / "checkpoints" / (std::string(kStepPrefix) + digits);
}

std::vector<std::int64_t> RunDirectory::steps() const {
  std::vector<std::int64_t> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(path_ / "checkpoints", none)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory() || name.compare(0, kStepPrefix.size(), kStepPrefix) != 0) continue;
    std::int64_t iteration = 0;
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + kStepPrefix.size(), end, iteration);
    if (error == std::errc() && stop == end) found.push_back(iteration);
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool RunDirectory::holds_run() const { return !steps().empty() || fs::exists(path_ / "final"); }

void RunDirectory::clean() const {
  std::error_code ignored;
  for (const fs::path& folder : {path_, path_ / "checkpoints"}) {
    std::vector<fs::path> leftovers;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      const bool half_written = name.find(".tmp-") != std::string::npos || name.compare(0, 5, ".old-") == 0;
      if (name[0] == '.' && half_written) leftovers.push_back(entry.path());
    }
    for (const fs::path& path : leftovers) fs::remove_all(path, ignored);
  }
}

void RunDirectory::write_step(std::int64_t iteration, const Fill& fill) {
  write(step_path(iteration), fill);
  if (keep_ == 0) return;
  // Deletes old checkpoints only after the new one is safe, each atomically by a rename.
  std::vector<std::int64_t> all = steps();
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep_) < all.size(); ++i) {
    const fs::path old = step_path(all[i]), doomed = old.parent_path() / (".old-" + old.filename().string());
    std::error_code ignored;
    fs::rename(old, doomed, ignored);
    fs::remove_all(doomed, ignored);
  }
}

void RunDirectory::write(const fs::path& target, const Fill& fill) {
  make_directories(target.parent_path());
  AtomicDirectory directory(target);
  fill(directory.path());
  directory.commit();
}

}  // namespace zoo
