#include "apps/training/schedule.h"

#include <cmath>
#include <numbers>

#include "data/base/error.h"
#include "data/base/near_match.h"

namespace zoo {

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> names{"constant", "linear", "cosine"};
  return names;
}

ScheduleKind schedule_named(const std::string& name) {
  const auto& names = schedule_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<ScheduleKind>(i);
  }
  throw Error("unknown schedule '", name, "'", did_you_mean(name, names),
              " (there are: constant, linear, cosine)");
}

double Schedule::at(std::int64_t iteration) const {
  const double i = static_cast<double>(iteration);
  if (iteration < warmup_iters) return peak * (i + 1) / static_cast<double>(warmup_iters + 1);
  if (kind == ScheduleKind::kConstant) return peak;
  if (iteration >= decay_iters) return floor;
  const double done =
      (i - static_cast<double>(warmup_iters)) / static_cast<double>(decay_iters - warmup_iters);
  const double left =
      kind == ScheduleKind::kLinear ? 1 - done : 0.5 * (1 + std::cos(std::numbers::pi * done));
  return floor + left * (peak - floor);
}

}  // namespace zoo
