#pragma once

/// @file
/// Use:
///
///     zoo::RandomStream random(/*seed=*/1, {.stream = 0, .step = 7, .row = 3});
///     const double uniform = random.uniform();
///     const std::vector<std::int64_t> order = random.permutation(10);
///     const zoo::PhiloxKey key = zoo::philox_key(/*seed=*/1);
///     const std::uint64_t die = 1 + zoo::uniform_below(6, /*counter=*/{0, 0, 0, 0}, key);

#include <array>
#include <cstdint>
#include <vector>

namespace zoo {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

/// Philox4x32-10 (Salmon et al., 2011): 128 random bits that are a pure function of counter and key.
PhiloxCounter philox4x32_10(PhiloxCounter counter, PhiloxKey key);

PhiloxKey philox_key(std::uint64_t seed);

/// A uniform number in [0, range) without bias; range > 0. A pure function of its arguments. The upper 16
/// bits of counter[3] must be 0: they number the rare retries (Lemire, 2019).
std::uint64_t uniform_below(std::uint64_t range, PhiloxCounter counter, PhiloxKey key);

/// Selects a sequence of batches: samplers with different seeds or streams never repeat one another.
struct SamplerSeed {
  std::uint64_t seed = 0;
  std::uint32_t stream = 0;
};

/// A sequence of random numbers that is a pure function of its position: the numbers for row 3 of step 7 do
/// not depend on earlier draws. The same on every platform.
class RandomStream {
 public:
  struct Position {
    std::uint32_t stream = 0;
    std::int64_t step = 0;  // in [0, 2^48)
    std::uint32_t row = 0;
  };

  RandomStream(std::uint64_t seed, const Position& position);

  /// Uniform in [0, range), range > 0.
  std::uint64_t below(std::uint64_t range) { return uniform_below(range, {draw_++, 0, 0, 0}, key_); }

  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform() { return static_cast<double>(below(std::uint64_t{1} << 53)) * 0x1p-53; }

  /// A permutation of 0 … count - 1, uniform over all (Fisher and Yates, 1938).
  std::vector<std::int64_t> permutation(std::int64_t count);

 private:
  PhiloxKey key_;
  std::uint32_t draw_ = 0;
};

}  // namespace zoo
