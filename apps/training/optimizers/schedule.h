#pragma once

/// @file
/// Use:
///
///     const zoo::Schedule schedule{.peak = 1e-3, .floor = 1e-4, .warmup_iters = 100, .decay_iters = 2000};
///     const double learning_rate = schedule.at(/*iteration=*/500);

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace zoo {

enum class ScheduleKind { kConstant, kLinear, kCosine, kInverseSqrt, kWsd, kTrapezoid };

/// In the order of ScheduleKind.
inline const std::vector<std::string> kScheduleNames{"constant",     "linear", "cosine",
                                                     "inverse_sqrt", "wsd",    "trapezoid"};

/// Learning rate by iteration: a linear warm-up to `peak`, then
///   constant      peak
///   linear        a straight line to `floor` at decay_iters, then `floor`
///   cosine        half a cosine to `floor` at decay_iters, then `floor` (Loshchilov and Hutter, 2017)
///   inverse_sqrt  peak sqrt(w / i) with w = warmup_iters (Vaswani et al., 2017, section 5.3); without a
///                 warm-up peak sqrt(w / (i + w)) with w = 10000. Never below `floor`.
///   wsd           peak, then a straight line to `floor` over the last cooldown_iters before decay_iters
///                 (warm-up, stable, decay: Hu et al., 2024)
///   trapezoid     another name of wsd
/// linear and cosine decay `cycles` times over equal stretches, each starting at `peak`: warm restarts.
struct Schedule {
  ScheduleKind kind = ScheduleKind::kCosine;
  double peak = 1e-3;
  std::optional<double> floor;  // none: a tenth of `peak`, at most 1e-4
  std::int64_t warmup_iters = 0;
  std::optional<std::int64_t> decay_iters;     // none: the Trainer's max_iters
  std::optional<std::int64_t> cooldown_iters;  // of wsd; none: a tenth of decay_iters
  std::int64_t cycles = 1;                     // for linear and cosine
  bool decays = true;                          // false: `peak` at every iteration, without warm-up

  ScheduleKind weight_decay = ScheduleKind::kConstant;  // constant, linear or cosine

  /// Share of the weight decay: 1, or from 1 in a straight line or half a cosine to 0 at decay_iters.
  double weight_decay_share(std::int64_t iteration) const {
    return Schedule{.kind = weight_decay, .peak = 1, .floor = 0, .decay_iters = decay_iters}.at(iteration);
  }

  /// As in nanoGPT: iteration i of the warm-up has peak * (i + 1) / (warmup_iters + 1).
  double at(std::int64_t iteration) const;
};

}  // namespace zoo
