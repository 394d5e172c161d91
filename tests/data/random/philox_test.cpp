#include <limits>

#include "data/random/random_stream.h"
#include "tests/support/catch.h"

using zoo::philox4x32_10;
using zoo::PhiloxCounter;

TEST_CASE("Philox4x32-10 gives Random123's known answers") {  // its tests/kat_vectors
  CHECK(philox4x32_10({0, 0, 0, 0}, {0, 0}) == PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  const std::uint32_t ones = 0xffffffff;
  CHECK(philox4x32_10({ones, ones, ones, ones}, {ones, ones}) ==
        PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("philox_key puts the low half of the seed first") {
  CHECK(zoo::philox_key(0x1122334455667788) == zoo::PhiloxKey{0x55667788, 0x11223344});
}

TEST_CASE("uniform_below scales the first 64 bits to the range") {
  // The known answer for zeros begins 0x6627e8d5 (low), 0xe169c58d (high). floor(bits * range / 2^64) by
  // hand:
  CHECK(zoo::uniform_below(1, {}, {}) == 0);
  CHECK(zoo::uniform_below(2, {}, {}) == 1);
  CHECK(zoo::uniform_below(256, {}, {}) == 0xe1);
  CHECK(zoo::uniform_below(std::uint64_t{1} << 63, {}, {}) == 0xe169c58d6627e8d5 >> 1);
}

TEST_CASE("uniform_below draws again where the range does not divide 2^64") {
  // Almost every second multiple of 2^63 + 1 has a low part that is drawn too often. The first attempt counts
  // only if its low part is at least the surplus 2^64 mod range = 2^63 - 1.
  const std::uint64_t range = (std::uint64_t{1} << 63) + 1, surplus = (std::uint64_t{1} << 63) - 1;
  int redrawn = 0;
  for (std::uint32_t i = 0; i < 64; ++i) {
    PhiloxCounter counter = {i, 0, 0, 0};
    __extension__ unsigned __int128 product = 0;
    int attempts = 0;
    do {
      counter[3] = static_cast<std::uint32_t>(attempts++) << 16;
      const PhiloxCounter bits = philox4x32_10(counter, {});
      product = std::uint64_t{bits[1]} << 32 | bits[0];
      product *= range;
    } while (static_cast<std::uint64_t>(product) < surplus);
    redrawn += attempts > 1 ? 1 : 0;
    CHECK(zoo::uniform_below(range, {i, 0, 0, 0}, {}) == static_cast<std::uint64_t>(product >> 64));
  }
  CHECK(redrawn > 16);
  CHECK(redrawn < 48);
}
