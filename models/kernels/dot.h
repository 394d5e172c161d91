#pragma once

#include "models/kernels/vector.h"

// Dots: the step of a tile (tile.h). Each multiplies a word of a row, 32 bits that 16 columns share, by a
// vector of those columns, kBytes long in memory, and adds the products to 16 sums.
namespace zoo::kernels {

// Vectors of sums that fit in the registers together with a step's factors; rows of the tallest tile, of one
// whose step unpacks columns, and of one that also unpacks its rows.
#if defined(__AVX512F__)
constexpr std::size_t kTileVectors = 24, kTallTile = 6, kMiddleTile = 5, kLowTile = 6;
#elif defined(__AVX2__) || defined(__aarch64__)
constexpr std::size_t kTileVectors = 6, kTallTile = 6, kMiddleTile = 5, kLowTile = 4;
#else
constexpr std::size_t kTileVectors = 2, kTallTile = 2, kMiddleTile = 2, kLowTile = 2;
#endif

/// One float32 of a row and of each column.
struct FloatDot {
  static constexpr std::size_t kTallest = kTallTile;
  using Sums = Lanes;
  static constexpr std::size_t kBytes = sizeof(Lanes);
  static ZOO_INLINE Lanes load(const std::byte* columns) { return kernels::load(columns); }
  static ZOO_INLINE Lanes add(const Lanes& sums, const std::byte* row, const Lanes& columns) {
    return sums + kernels::load<float>(row) * columns;
  }
};

/// A pair of bfloat16 of a row and of each column.
struct PairDot {
  static constexpr std::size_t kTallest = kLowTile;
  using Sums = Lanes;
  static constexpr std::size_t kBytes = sizeof(Words);
  static ZOO_INLINE Words load(const std::byte* columns) { return kernels::load<Words>(columns); }
#if defined(__AVX512BF16__)
  static ZOO_INLINE Lanes add(const Lanes& sums, const std::byte* row, const Words& columns) {
    return Lanes(_mm512_dpbf16_ps(__m512(sums), __m512bh(_mm512_set1_epi32(kernels::load<int>(row))),
                                  __m512bh(bits<__m512i>(columns))));
  }
#elif defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
  static ZOO_INLINE Lanes add(const Lanes& sums, const std::byte* row, const Words& columns) {
    return add(sums, bits<bfloat16x8_t>(WordRegister{} + kernels::load<std::uint32_t>(row)), columns);
  }

 private:
  static ZOO_INLINE Register add(const Register& sums, const bfloat16x8_t& row, const WordRegister& columns) {
    return Register(vbfdotq_f32(float32x4_t(sums), bits<bfloat16x8_t>(columns), row));
  }
  template <class Half>
  static ZOO_INLINE Twice<Half> add(const Twice<Half>& sums, const bfloat16x8_t& row, const auto& columns) {
    return {add(sums.low, row, columns.low), add(sums.high, row, columns.high)};
  }
#else
  static ZOO_INLINE Lanes add(const Lanes& sums, const std::byte* row, const Words& columns) {
    // Shifts a vector: one broadcast from memory instead of two from registers.
    const WordRegister pair = WordRegister{} + kernels::load<std::uint32_t>(row);
    // The second product first, as the instruction does.
    return add(add(sums, bits<Register>(pair & 0xFFFF0000U), high_half(columns)), bits<Register>(pair << 16),
               low_half(columns));
  }

 private:
  static ZOO_INLINE Register add(const Register& sums, const Register& row, const Register& columns) {
    return sums + row * columns;
  }
  template <class Half>
  static ZOO_INLINE Twice<Half> add(const Twice<Half>& sums, const Register& row,
                                    const Twice<Half>& columns) {
    return {add(sums.low, row, columns.low), add(sums.high, row, columns.high)};
  }
#endif
};

#if defined(__AVX512BF16__) || defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
constexpr bool kMultipliesPairs = true;
#else
constexpr bool kMultipliesPairs = false;
#endif

/// Two float32 of a row and a pair of bfloat16 of each column. For CPUs that do not multiply pairs, where
/// unpacking the rows would cost as much as the products.
struct FloatPairDot {
  static constexpr std::size_t kTallest = kMiddleTile;
  using Sums = Lanes;
  static constexpr std::size_t kBytes = sizeof(Words);
  struct Columns {
    Lanes low, high;
  };
  static ZOO_INLINE Columns load(const std::byte* columns) {
    const auto pairs = kernels::load<Words>(columns);
    return {low_half(pairs), high_half(pairs)};
  }
  static ZOO_INLINE Lanes add(const Lanes& sums, const std::byte* row, const Columns& columns) {
    return FloatDot::add(FloatDot::add(sums, row, columns.low), row + sizeof(float), columns.high);
  }
};

#if defined(__AVXVNNI__) || defined(__ARM_FEATURE_DOTPROD)
constexpr std::size_t kByteTile = kTallTile;
#else
constexpr std::size_t kByteTile = kLowTile;
#endif
// Without I8MM, NEON multiplies only signed bytes.
#if defined(__ARM_FEATURE_DOTPROD) && !defined(__ARM_FEATURE_MATMUL_INT8)
constexpr bool kSignedBytes = true;
#else
constexpr bool kSignedBytes = false;
#endif

#if defined(__AVX2__)
/// Sums of the products of neighbours.
ZOO_INLINE IntegerRegister pair_products(const ShortRegister& a, const ShortRegister& b) {
#if defined(__AVX512BW__)
  return IntegerRegister(_mm512_madd_epi16(__m512i(a), __m512i(b)));
#else
  return IntegerRegister(_mm256_madd_epi16(__m256i(a), __m256i(b)));
#endif
}
#endif

/// Four signed bytes of a row, four unsigned bytes of each column.
struct ByteDot {
  static constexpr std::size_t kTallest = kByteTile;
  using Sums = IntegerLanes;
  static constexpr std::size_t kBytes = sizeof(Words);
  static constexpr int kTaken = kSignedBytes ? 128 : 0;  // load() subtracts it from each byte of a column
  static ZOO_INLINE Words load(const std::byte* columns) {
    const auto bytes = kernels::load<Words>(columns);
    return kSignedBytes ? bytes ^ 0x80808080U : bytes;
  }
  static ZOO_INLINE Sums add(const Sums& sums, const std::byte* row, const Words& columns) {
    return add(sums, kernels::load<int>(row), columns);
  }
  static ZOO_INLINE const IntegerLanes& total(const Sums& sums) { return sums; }

 private:
  template <class Half>
  static ZOO_INLINE Twice<Half> add(const Twice<Half>& sums, int row, const auto& columns) {
    return {add(sums.low, row, columns.low), add(sums.high, row, columns.high)};
  }
  static ZOO_INLINE IntegerRegister add(const IntegerRegister& sums, int row, const WordRegister& columns) {
#if defined(__AVX512VNNI__)
    return IntegerRegister(
        _mm512_dpbusd_epi32(__m512i(sums), bits<__m512i>(columns), _mm512_set1_epi32(row)));
#elif defined(__AVXVNNI__)
    return IntegerRegister(
        _mm256_dpbusd_avx_epi32(__m256i(sums), bits<__m256i>(columns), _mm256_set1_epi32(row)));
#elif defined(__AVX2__)
    // Multiplies even and odd bytes separately, because the mixed-sign byte instruction saturates.
    const auto factors = bits<ShortRegister>(WordRegister{} + static_cast<std::uint32_t>(row));
    using Shorts = std::uint16_t __attribute__((vector_size(sizeof(WordRegister))));
    const auto even = bits<ShortRegister>(columns & 0x00FF00FFU),
               odd = bits<ShortRegister>(bits<Shorts>(columns) >> 8);
    return sums + (pair_products(even, factors << 8 >> 8) + pair_products(odd, factors >> 8));
#elif defined(__ARM_FEATURE_MATMUL_INT8)
    return IntegerRegister(
        vusdotq_s32(int32x4_t(sums), bits<uint8x16_t>(columns), vreinterpretq_s8_s32(vdupq_n_s32(row))));
#elif defined(__ARM_FEATURE_DOTPROD)
    return IntegerRegister(
        vdotq_s32(int32x4_t(sums), bits<int8x16_t>(columns), vreinterpretq_s8_s32(vdupq_n_s32(row))));
#else
    IntegerRegister total = sums;
    for (int i = 0; i < 4; ++i) {
      const int factor = static_cast<signed char>(row >> 8 * i);
      total += factor * IntegerRegister(columns >> 8 * i & 255U);
    }
    return total;
#endif
  }
};

#if defined(__AVX2__) && !defined(__AVXVNNI__) && !defined(__AVX512F__)
#define ZOO_SUMS_SHORTS

/// Sums of two neighbouring products of unsigned bytes below 129 and a row's signed ones. They fit in 16
/// bits.
ZOO_INLINE ShortRegister byte_products(const WordRegister& columns, const std::byte* row) {
  return ShortRegister(_mm256_maddubs_epi16(bits<__m256i>(columns), _mm256_set1_epi32(load<int>(row))));
}
#endif

/// Two words of a row; each column has four unsigned nibbles for the first in its low halves of bytes, and
/// four for the second in its high halves.
struct NibbleDot {
  static constexpr std::size_t kTallest = kLowTile;
  static constexpr std::size_t kBytes = sizeof(Words);
  struct Columns {
    Words low, high;
  };
  static ZOO_INLINE Columns load(const std::byte* columns) {
    const auto both = kernels::load<Words>(columns);
    return {both & 0x0F0F0F0FU, both >> 4 & 0x0F0F0F0FU};
  }

#if defined(ZOO_SUMS_SHORTS)
  // A group's sums fit in 16 bits: 2 * 8 * 15 * 127.
  using Sums = InRegisters<ShortRegister>;
  static ZOO_INLINE Sums add(const Sums& sums, const std::byte* row, const Columns& columns) {
    return add(add(sums, row, columns.low), row + 4, columns.high);
  }
  static ZOO_INLINE IntegerLanes total(const Sums& sums) { return {total(sums.low), total(sums.high)}; }

 private:
  static ZOO_INLINE Sums add(const Sums& sums, const std::byte* row, const Words& columns) {
    return {sums.low + byte_products(columns.low, row), sums.high + byte_products(columns.high, row)};
  }
  static ZOO_INLINE IntegerRegister total(const ShortRegister& sums) {
    return pair_products(sums, ShortRegister{} + 1);
  }
#else
  using Sums = IntegerLanes;
  static ZOO_INLINE Sums add(const Sums& sums, const std::byte* row, const Columns& columns) {
    return ByteDot::add(ByteDot::add(sums, row, columns.low), row + 4, columns.high);
  }
  static ZOO_INLINE const IntegerLanes& total(const Sums& sums) { return sums; }
#endif
};

/// Two words of a row and of each column, of unsigned bytes below 64.
struct SmallByteDot {
  static constexpr std::size_t kTallest = kLowTile;
  using Sums = IntegerLanes;
  static constexpr std::size_t kBytes = sizeof(Words);
  static constexpr std::size_t kPlane = 4 * sizeof(Words);  // between the words of a column
  struct Columns {
    Words first, second;
  };
  static ZOO_INLINE Columns load(const std::byte* columns) {
    return {kernels::load<Words>(columns), kernels::load<Words>(columns + kPlane)};
  }
  static ZOO_INLINE const IntegerLanes& total(const Sums& sums) { return sums; }

#if defined(ZOO_SUMS_SHORTS)
  static ZOO_INLINE Sums add(const Sums& sums, const std::byte* row, const Columns& columns) {
    return {add(sums.low, row, columns.first.low, columns.second.low),
            add(sums.high, row, columns.first.high, columns.second.high)};
  }

 private:
  // The sum of four products fits in 16 bits: 4 * 63 * 127.
  static ZOO_INLINE IntegerRegister add(const IntegerRegister& sums, const std::byte* row,
                                        const WordRegister& first, const WordRegister& second) {
    return sums +
           pair_products(byte_products(first, row) + byte_products(second, row + 4), ShortRegister{} + 1);
  }
#else
  static ZOO_INLINE Sums add(const Sums& sums, const std::byte* row, const Columns& columns) {
    return ByteDot::add(ByteDot::add(sums, row, columns.first), row + 4, columns.second);
  }
#endif
};

/// A group of a row's inputs. Each column has their low four bits as in NibbleDot, then a word whose byte j
/// has the high bits of inputs j, 4 + j, 8 + j and so on, from its lowest bits on.
template <std::size_t Inputs, std::size_t HighBits> struct HighBitsDot : SmallByteDot {
  struct Columns {
    Words of[Inputs / 4];
  };
  static ZOO_INLINE Columns load(const std::byte* columns) {
    constexpr std::uint32_t kHigh = (1U << HighBits) - 1, kMask = kHigh * 0x10101010U;
    const auto high = kernels::load<Words>(columns + Inputs / 8 * kPlane);
    Columns read;
    for (std::size_t w = 0; w < Inputs / 8; ++w) {
      const auto low = kernels::load<Words>(columns + w * kPlane);
      const std::size_t first = 2 * w * HighBits, second = first + HighBits;  // bits, which go to bit 4
      read.of[2 * w] = (low & 0x0F0F0F0FU) | (moved(high, first) & kMask);
      read.of[2 * w + 1] = (low >> 4 & 0x0F0F0F0FU) | (moved(high, second) & kMask);
    }
    return read;
  }
  static ZOO_INLINE Sums add(Sums sums, const std::byte* row, const Columns& columns) {
    for (std::size_t i = 0; i < Inputs / 4; i += 2)
      sums = SmallByteDot::add(sums, row + 4 * i, {columns.of[i], columns.of[i + 1]});
    return sums;
  }

 private:
  static ZOO_INLINE Words moved(const Words& words, std::size_t bit) {
    return bit < 4 ? words << static_cast<int>(4 - bit) : words >> static_cast<int>(bit - 4);
  }
};

/// One float32 of a row, one signed byte of each column.
struct SignedByteDot {
  static constexpr std::size_t kTallest = kTallTile;
  using Sums = Lanes;
  static constexpr std::size_t kBytes = kLanes;
  static ZOO_INLINE Lanes load(const std::byte* columns) { return converted<Lanes>(from_bytes(columns)); }
  static ZOO_INLINE Lanes add(const Lanes& sums, const std::byte* row, const Lanes& columns) {
    return FloatDot::add(sums, row, columns);
  }
};

}  // namespace zoo::kernels
