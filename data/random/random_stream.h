#pragma once

#include <cstdint>
#include <vector>

#include "data/random/philox.h"

namespace zoo {

/// Which sequence of batches: steps of one sampler never repeat another's with a different seed or stream
/// (for example training, evaluation, or a data-parallel rank).
struct SamplerSeed {
  std::uint64_t seed = 0;
  std::uint32_t stream = 0;
};

/// Random numbers one after the other that are a pure function of where they are drawn: what is drawn for row
/// 3 of step 7 does not depend on what was drawn before. The same on every platform.
class RandomStream {
 public:
  struct Place {
    std::uint32_t stream = 0;
    std::int64_t step = 0;  // in [0, 2^48)
    std::uint32_t row = 0;
  };

  RandomStream(std::uint64_t seed, const Place& place);

  /// Uniform in [0, range), range > 0.
  std::uint64_t below(std::uint64_t range) { return uniform_below(range, {draw_++, 0, 0, 0}, key_); }

  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform() { return static_cast<double>(below(std::uint64_t{1} << 53)) * 0x1p-53; }

  /// 0 … count - 1 in a random order, each order as likely (Fisher and Yates, 1938).
  std::vector<std::int64_t> permutation(std::int64_t count);

 private:
  PhiloxKey key_;
  std::uint32_t draw_ = 0;
};

}  // namespace zoo
