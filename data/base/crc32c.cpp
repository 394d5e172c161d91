// The CPU's instruction processes 8 bytes with a latency of three cycles, and three can be in flight. So
// three blocks are summed in parallel and combined: the checksum of A B is that of A, moved over B's length,
// plus that of B. Moving is multiplication by a power of x, linear in the 32 bits: a table of 256 values for
// each of the four bytes.

#include "data/base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace zoo {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // Castagnoli's, lowest bit first
using Table = std::array<std::uint32_t, 256>;

constexpr std::uint32_t by_bit(std::uint32_t crc) { return (crc >> 1) ^ (crc % 2 == 1 ? kPolynomial : 0); }

// [i]: checksums of a byte followed by i zeros.
constexpr std::array<Table, 8> make_tables() {
  std::array<Table, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = by_bit(crc);
    tables[0][byte] = crc;
  }
  for (std::size_t i = 1; i < tables.size(); ++i)
    for (std::size_t byte = 0; byte < 256; ++byte)
      tables[i][byte] = (tables[i - 1][byte] >> 8) ^ tables[0][tables[i - 1][byte] & 0xFF];
  return tables;
}

constexpr std::array<Table, 8> kTables = make_tables();

std::uint32_t by_table(const std::uint8_t* bytes, std::size_t size, std::uint32_t crc) {
  for (; size >= 8; size -= 8, bytes += 8) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < 4; ++i) sum ^= kTables[7 - i][(crc >> (8 * i) & 0xFF) ^ bytes[i]];
    for (std::size_t i = 4; i < 8; ++i) sum ^= kTables[7 - i][bytes[i]];
    crc = sum;
  }
  for (; size > 0; --size, ++bytes) crc = (crc >> 8) ^ kTables[0][(crc ^ *bytes) & 0xFF];
  return crc;
}

#if defined(__x86_64__)

constexpr std::size_t kBlock = 4096;  // bytes, of each of three

// [b][v]: checksum v << 8 b after kBlock bytes of zeros.
std::array<Table, 4> make_moves() {
  const std::array<std::uint8_t, kBlock> zeros{};
  std::array<Table, 4> moves{};
  for (std::size_t b = 0; b < moves.size(); ++b)
    for (std::uint32_t value = 0; value < 256; ++value)
      moves[b][value] = by_table(zeros.data(), zeros.size(), value << (8 * b));
  return moves;
}

std::uint32_t moved(const std::array<Table, 4>& moves, std::uint32_t crc) {
  return moves[0][crc & 0xFF] ^ moves[1][crc >> 8 & 0xFF] ^ moves[2][crc >> 16 & 0xFF] ^ moves[3][crc >> 24];
}

std::uint64_t word(const std::uint8_t* bytes) {
  std::uint64_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

__attribute__((target("sse4.2"))) std::uint32_t by_instruction(const std::uint8_t* bytes, std::size_t size,
                                                               std::uint32_t crc) {
  static const std::array<Table, 4> kMoves = make_moves();
  for (; size >= 3 * kBlock; size -= 3 * kBlock, bytes += 3 * kBlock) {
    std::uint64_t a = crc, b = 0, c = 0;
    for (std::size_t i = 0; i < kBlock; i += 8) {
      a = _mm_crc32_u64(a, word(bytes + i));
      b = _mm_crc32_u64(b, word(bytes + kBlock + i));
      c = _mm_crc32_u64(c, word(bytes + 2 * kBlock + i));
    }
    crc = moved(kMoves, moved(kMoves, static_cast<std::uint32_t>(a)) ^ static_cast<std::uint32_t>(b)) ^
          static_cast<std::uint32_t>(c);
  }
  std::uint64_t sum = crc;
  for (; size >= 8; size -= 8, bytes += 8) sum = _mm_crc32_u64(sum, word(bytes));
  return by_table(bytes, size, static_cast<std::uint32_t>(sum));
}

#endif

}  // namespace

std::uint32_t crc32c(const void* bytes, std::size_t size, std::uint32_t before) {
  const auto* begin = static_cast<const std::uint8_t*>(bytes);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~by_instruction(begin, size, ~before);
#endif
  return ~by_table(begin, size, ~before);
}

}  // namespace zoo
