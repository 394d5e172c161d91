#pragma once

/// @file
/// Use:
///
///     constexpr zoo::FieldRange probability = zoo::between(0, 1);
///     if (!probability.holds(1.5)) …

#include <optional>

namespace zoo {

/// The numbers that a field may have.
struct FieldRange {
  std::optional<double> least, above, most;  // `above` is not among them

  constexpr bool holds(double value) const {
    return !(least && !(value >= *least)) && !(above && !(value > *above)) && !(most && !(value <= *most));
  }
};

constexpr FieldRange at_least(double least) {
  return {.least = least};
}
constexpr FieldRange above(double bound) {
  return {.above = bound};
}
constexpr FieldRange between(double least, double most) {
  return {.least = least, .most = most};
}

}  // namespace zoo
