#pragma once

#include "models/kernels/cpu.h"

namespace zoo::ops {

/// While one lives, a forward pass of this thread consists of LibTorch's operators, and no tensor's values
/// decide which: a trace of them (models/graph) holds for all inputs.
using kernels::Tracing;

}  // namespace zoo::ops
