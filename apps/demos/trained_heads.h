#pragma once

#include <cstdint>
#include <vector>

#include "apps/plots/figures.h"

namespace zoo {

/// Trains two heads to predict, at each position, the previous word and the first word; prints each head's
/// attention and the loss without the head. Returns their maps on one sequence.
std::vector<Figure> show_trained_heads(std::uint64_t seed);

}  // namespace zoo
