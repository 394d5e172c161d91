#pragma once

#include <cstdint>
#include <vector>

#include "apps/plots/figures.h"

namespace zoo {

/// Trains two heads to say, at each position, the word before and the word that came first; prints what each
/// head looks at and what is lost without it. Returns their maps on one sequence.
std::vector<Figure> show_trained_heads(std::uint64_t seed);

}  // namespace zoo
