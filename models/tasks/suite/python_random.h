#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace zoo {

/// CPython's random.Random(seed): a Mersenne Twister that is seeded by init_by_array() of its authors' code.
std::mt19937 python_random(std::uint32_t seed);

/// Its sample(range(size), count): distinct indices. `count` is at most `size`.
std::vector<std::size_t> python_sample(std::mt19937& random, std::size_t size, std::size_t count);

}  // namespace zoo
