#pragma once

#include "models/kernels/packed/packed_weight.h"

namespace zoo {

/// Bytes per second that all threads read from memory: the best of a few passes over 512 MB.
double memory_bandwidth();

/// Operations (a multiplication and an addition are two) per second of all threads in products of 512 rows
/// with a packed weight [2048, 2048], which no work exceeds: the best of a few.
double product_rate(kernels::WeightType type);

}  // namespace zoo
