#pragma once

#include <cstdint>

#include "apps/plots/figures.h"

namespace zoo {

/// Trains a small decoder with each position encoding on short sequences, and prints its accuracy on longer
/// ones. Returns the accuracy over length.
Figure show_extrapolation(std::uint64_t seed);

}  // namespace zoo
