#pragma once

#include <cstdint>

#include "apps/plots/figures.h"

namespace zoo {

/// Trains a small decoder with each kind of positions on short sequences, and prints how it does on longer
/// ones. Returns the accuracy over length.
Figure show_extrapolation(std::uint64_t seed);

}  // namespace zoo
