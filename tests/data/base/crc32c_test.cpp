#include "data/base/crc32c.h"

#include <numeric>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace {

std::uint32_t sum_of(const std::string& bytes) { return zoo::crc32c(bytes.data(), bytes.size()); }

// By the definition: the remainder of a division of polynomials, bit by bit.
std::uint32_t bit_by_bit(const std::vector<std::uint8_t>& bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const std::uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc % 2 == 1 ? 0x82F63B78 : 0);
  }
  return ~crc;
}

}  // namespace

TEST_CASE("CRC-32C has the values of RFC 3720, B.4") {
  std::string ascending(32, '\0');
  std::iota(ascending.begin(), ascending.end(), '\0');
  CHECK(sum_of("") == 0);
  CHECK(sum_of("123456789") == 0xE3069283);
  CHECK(sum_of(std::string(32, '\0')) == 0x8A9136AA);
  CHECK(sum_of(std::string(32, '\xFF')) == 0x62A8AB43);
  CHECK(sum_of(ascending) == 0x46DD794E);
  CHECK(sum_of({ascending.rbegin(), ascending.rend()}) == 0x113FDB5C);
}

TEST_CASE("CRC-32C of any length and of parts is that of its definition") {
  std::vector<std::uint8_t> bytes(30000);
  std::uint32_t state = 1;
  for (std::uint8_t& byte : bytes)
    byte = static_cast<std::uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  for (const std::size_t size : {1, 7, 8, 9, 4096, 12287, 12288, 12289, 12300, 24577, 30000}) {
    CAPTURE(size);
    const std::vector<std::uint8_t> part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    const std::uint32_t expected = bit_by_bit(part);
    CHECK(zoo::crc32c(part.data(), size) == expected);
    CHECK(zoo::crc32c(part.data() + size / 3, size - size / 3, zoo::crc32c(part.data(), size / 3)) ==
          expected);
  }
}
