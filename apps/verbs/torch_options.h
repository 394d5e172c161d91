#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "apps/command/compute_options.h"

namespace zoo {

/// --device as LibTorch's. Throws Error naming the flag when a CUDA device is asked for that is not there.
c10::Device device_of(const ComputeOptions& options);

/// --dtype as LibTorch's.
c10::ScalarType dtype_of(const ComputeOptions& options);

/// Makes LibTorch use --threads threads; without the flag one for each core.
void apply_threads(const ComputeOptions& options);

}  // namespace zoo
