#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "models/tasks/compute_options.h"

namespace zoo {

double seconds_of(const std::function<void()>& compute);

/// Requires at least one value; the upper median of an even number.
double median(std::vector<double> values);

/// Peak resident memory of this process, in MiB.
double peak_resident_mb();

struct Cost {
  double seconds = 0;
  std::int64_t peak_bytes = 0;  // of tensors, beyond those allocated before
};

/// Runs `compute` three times or, if it is fast, for a twentieth of a second: the shortest time, and the peak
/// of what LibTorch's allocator gave this thread in the first run.
Cost cost_of(const std::function<void()>& compute);

/// Sets LibTorch's number of threads to --threads; without the flag and OMP_NUM_THREADS one per core that
/// this process can use. The first time, a number above that of these cores is noted on standard error.
void apply_threads(const ComputeOptions& options);

}  // namespace zoo
