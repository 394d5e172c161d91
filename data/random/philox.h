#pragma once

/// @file
/// Use:
///
///     const zoo::PhiloxKey key = zoo::philox_key(/*seed=*/1);
///     const std::uint64_t die = 1 + zoo::uniform_below(6, /*counter=*/{0, 0, 0, 0}, key);

#include <array>
#include <cstdint>

namespace zoo {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): 128 random bits that
/// are a pure function of counter and key.
PhiloxCounter philox4x32_10(PhiloxCounter counter, PhiloxKey key);

PhiloxKey philox_key(std::uint64_t seed);

/// A uniform number in [0, range) without bias; range > 0. A pure function of its arguments. The upper 16
/// bits of counter[3] must be 0: they number the rare retries (Lemire, "Fast random integer generation in an
/// interval", 2019).
std::uint64_t uniform_below(std::uint64_t range, PhiloxCounter counter, PhiloxKey key);

}  // namespace zoo
