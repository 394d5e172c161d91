#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "apps/command/compute_options.h"

namespace zoo {

/// LibTorch device of --device. Throws Error naming the flag if the CUDA device does not exist.
c10::Device device_of(const ComputeOptions& options);

/// LibTorch type of --dtype.
c10::ScalarType dtype_of(const ComputeOptions& options);

/// Sets LibTorch's number of threads to --threads; without the flag one per core. The first time, a number
/// above that of the processors is noted on standard error.
void apply_threads(const ComputeOptions& options);

}  // namespace zoo
