#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace zoo {

double seconds_of(const std::function<void()>& compute);

/// Of at least one value; the upper one of an even number.
double median(std::vector<double> values);

/// The most memory that this process has held, in MiB.
double peak_resident_mb();

/// What a computation takes.
struct Cost {
  double seconds = 0;
  std::int64_t peak_bytes = 0;  // of tensors, beyond those that were there before
};

/// Runs it once or, if that was quick, until a twentieth of a second has passed: the shortest time, and the
/// memory of the first run. Counts what LibTorch's allocator gives to this thread.
Cost cost_of(const std::function<void()>& compute);

}  // namespace zoo
