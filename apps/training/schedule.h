#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zoo {

enum class ScheduleKind { kConstant, kLinear, kCosine };

/// "constant", "linear", "cosine", in the order of ScheduleKind.
const std::vector<std::string>& schedule_names();
/// Throws Error with the nearest name for one that is not a schedule's.
ScheduleKind schedule_named(const std::string& name);

/// The learning rate over the iterations: a linear warm-up to `peak`, then constant, or falling to `floor` by
/// a straight line or half a cosine (Loshchilov and Hutter, 2017) until `decay_iters`, and `floor` from there
/// on.
struct Schedule {
  ScheduleKind kind = ScheduleKind::kCosine;
  double peak = 1e-3, floor = 1e-4;
  std::int64_t warmup_iters = 0, decay_iters = 0;

  /// nanoGPT's rule to the letter: iteration i of the warm-up has peak * (i + 1) / (warmup_iters + 1).
  double at(std::int64_t iteration) const;
};

}  // namespace zoo
