#pragma once

#include "models/kernels/vector.h"

// Dots: the step of a tile (tile.h). Each multiplies a word of a row, 32 bits that 16 columns share, by a
// vector of those columns, kBytes long in memory, and adds the products to 16 sums.
namespace zoo::kernels {

/// One float32 of a row and of each column.
struct FloatDot {
  using Sums = Lanes;
  static constexpr std::size_t kBytes = sizeof(Lanes);
  static ZOO_INLINE Lanes load(const std::byte* columns) { return kernels::load(columns); }
  static ZOO_INLINE Lanes add(const Lanes& sums, const std::byte* row, const Lanes& columns) {
    return sums + kernels::load<float>(row) * columns;
  }
};

/// A pair of bfloat16 of a row and of each column.
struct PairDot {
  using Sums = Lanes;
  static constexpr std::size_t kBytes = sizeof(Words);
  static ZOO_INLINE Words load(const std::byte* columns) { return kernels::load<Words>(columns); }
  static ZOO_INLINE Lanes add(const Lanes& sums, const std::byte* row, const Words& columns) {
    const auto pair = kernels::load<std::uint32_t>(row);
#if defined(__AVX512BF16__)
    return Lanes(_mm512_dpbf16_ps(__m512(sums), __m512bh(_mm512_set1_epi32(static_cast<int>(pair))),
                                  __m512bh(bits<__m512i>(columns))));
#else
    const Lanes low = sums + bits<float>(pair << 16) * low_half(columns);
    return low + bits<float>(pair & 0xFFFF0000U) * high_half(columns);
#endif
  }
};

/// Four signed bytes of a row, four unsigned bytes of each column.
struct ByteDot {
  using Sums = IntegerLanes;
  static constexpr std::size_t kBytes = sizeof(Words);
  static ZOO_INLINE Words load(const std::byte* columns) { return kernels::load<Words>(columns); }
  static ZOO_INLINE Sums add(Sums sums, const std::byte* row, const Words& columns) {
    const int four = kernels::load<int>(row);
#if defined(__AVX512VNNI__)
    return Sums(_mm512_dpbusd_epi32(__m512i(sums), bits<__m512i>(columns), _mm512_set1_epi32(four)));
#elif defined(__AVX512BW__)
    // Even and odd bytes separately, since the mixed-sign byte instruction saturates.
    const __m512i w = bits<__m512i>(columns), a = _mm512_set1_epi32(four);
    const __m512i low = _mm512_set1_epi16(0xFF);
    const __m512i even =
        _mm512_madd_epi16(_mm512_and_si512(w, low), _mm512_srai_epi16(_mm512_slli_epi16(a, 8), 8));
    const __m512i odd = _mm512_madd_epi16(_mm512_srli_epi16(w, 8), _mm512_srai_epi16(a, 8));
    return sums + Sums(_mm512_add_epi32(even, odd));
#elif defined(__AVX2__)
    __m256i w[2], s[2];
    std::memcpy(w, &columns, sizeof w);
    std::memcpy(s, &sums, sizeof s);
    const __m256i a = _mm256_set1_epi32(four), low = _mm256_set1_epi16(0xFF);
    const __m256i a_even = _mm256_srai_epi16(_mm256_slli_epi16(a, 8), 8), a_odd = _mm256_srai_epi16(a, 8);
    for (int i = 0; i < 2; ++i) {
      s[i] = _mm256_add_epi32(s[i], _mm256_madd_epi16(_mm256_and_si256(w[i], low), a_even));
      s[i] = _mm256_add_epi32(s[i], _mm256_madd_epi16(_mm256_srli_epi16(w[i], 8), a_odd));
    }
    std::memcpy(&sums, s, sizeof sums);
    return sums;
#else
    for (int i = 0; i < 4; ++i) {
      const int factor = static_cast<signed char>(four >> 8 * i);
      sums += factor * IntegerLanes(columns >> 8 * i & 255U);
    }
    return sums;
#endif
  }
};

/// Two words of a row; each column has four unsigned nibbles for the first in its low halves of bytes, and
/// four for the second in its high halves.
struct NibbleDot {
  using Sums = IntegerLanes;
  static constexpr std::size_t kBytes = sizeof(Words);
  struct Columns {
    Words low, high;
  };
  static ZOO_INLINE Columns load(const std::byte* columns) {
    const auto both = kernels::load<Words>(columns);
    return {both & 0x0F0F0F0FU, both >> 4 & 0x0F0F0F0FU};
  }
  static ZOO_INLINE Sums add(const Sums& sums, const std::byte* row, const Columns& columns) {
    return ByteDot::add(ByteDot::add(sums, row, columns.low), row + 4, columns.high);
  }
};

/// One float32 of a row, one signed byte of each column.
struct SignedByteDot {
  using Sums = Lanes;
  static constexpr std::size_t kBytes = kLanes;
  static ZOO_INLINE Lanes load(const std::byte* columns) {
    using Sixteen = signed char __attribute__((vector_size(16)));
    const auto bytes = kernels::load<Sixteen>(columns);
#if defined(__AVX512F__)
    return Lanes(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(__m128i(bytes))));
#else
    using Shorts = short __attribute__((vector_size(32)));
    return __builtin_convertvector(
        __builtin_convertvector(__builtin_convertvector(bytes, Shorts), IntegerLanes), Lanes);
#endif
  }
  static ZOO_INLINE Lanes add(const Lanes& sums, const std::byte* row, const Lanes& columns) {
    return FloatDot::add(sums, row, columns);
  }
};

}  // namespace zoo::kernels
