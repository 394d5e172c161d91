#include "apps/training/optimizers/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "data/base/error.h"
#include "data/base/near_match.h"

namespace zoo {
namespace {

constexpr double kTimescaleWithoutWarmup = 10000;

double inverse_sqrt(double iteration, double warmup) {
  if (warmup > 0) return std::sqrt(warmup / iteration);
  return std::sqrt(kTimescaleWithoutWarmup / (iteration + kTimescaleWithoutWarmup));
}

}  // namespace

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> names{"constant", "linear", "cosine", "inverse_sqrt", "wsd"};
  return names;
}

ScheduleKind schedule_named(const std::string& name) {
  const auto& names = schedule_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<ScheduleKind>(i);
  }
  throw Error("unknown schedule '", name, "'", did_you_mean(name, names),
              " (there are: constant, linear, cosine, inverse_sqrt, wsd)");
}

double Schedule::at(std::int64_t iteration) const {
  const auto i = static_cast<double>(iteration), warmup = static_cast<double>(warmup_iters);
  if (iteration < warmup_iters) return peak * (i + 1) / (warmup + 1);
  if (kind == ScheduleKind::kConstant) return peak;
  if (kind == ScheduleKind::kInverseSqrt) return std::max(floor, peak * inverse_sqrt(i, warmup));
  if (iteration >= decay_iters) return floor;
  const auto end = static_cast<double>(decay_iters);
  double left = 1;
  if (kind == ScheduleKind::kWsd) {
    left = std::min(1.0, (end - i) / static_cast<double>(std::max<std::int64_t>(1, cooldown_iters)));
  } else {
    double whole = 0;
    const double done = std::modf((i - warmup) / (end - warmup) * static_cast<double>(cycles), &whole);
    left = kind == ScheduleKind::kLinear ? 1 - done : 0.5 * (1 + std::cos(std::numbers::pi * done));
  }
  return floor + left * (peak - floor);
}

}  // namespace zoo
