#include "apps/training/optimizers/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace zoo {

double Schedule::at(std::int64_t iteration) const {
  if (!decays) return peak;
  const auto i = static_cast<double>(iteration), warmup = static_cast<double>(warmup_iters);
  if (iteration < warmup_iters) return peak * (i + 1) / (warmup + 1);
  if (kind == ScheduleKind::kConstant) return peak;
  const double lowest = floor.value_or(std::min(1e-4, peak / 10));
  if (kind == ScheduleKind::kInverseSqrt) {
    constexpr double kTimescale = 10000;  // without a warm-up
    const double share = warmup > 0 ? warmup / i : kTimescale / (i + kTimescale);
    return std::max(lowest, peak * std::sqrt(share));
  }
  const std::int64_t last = decay_iters.value_or(0);
  if (iteration >= last) return lowest;
  const auto end = static_cast<double>(last);
  double left = 1;
  if (kind == ScheduleKind::kWsd || kind == ScheduleKind::kTrapezoid) {
    const std::int64_t cooldown = std::max<std::int64_t>(1, cooldown_iters.value_or(last / 10));
    left = std::min(1.0, (end - i) / static_cast<double>(cooldown));
  } else {
    const double done = std::fmod((i - warmup) / (end - warmup) * static_cast<double>(cycles), 1.0);
    left = kind == ScheduleKind::kLinear ? 1 - done : 0.5 * (1 + std::cos(std::numbers::pi * done));
  }
  return lowest + left * (peak - lowest);
}

}  // namespace zoo
