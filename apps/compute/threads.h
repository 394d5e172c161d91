#pragma once

#include "models/tasks/compute_options.h"

namespace zoo {

/// Sets LibTorch's number of threads to --threads; without the flag one per core. The first time, a number
/// above that of the processors is noted on standard error.
void apply_threads(const ComputeOptions& options);

}  // namespace zoo
