#pragma once

#include <cstdint>

#include "models/kernels/vector.h"
#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

// Vectors of bfloat16 pairs, the earlier in the lower half, for kernels only (see vector.h).
namespace zoo::kernels {

using Words = std::uint32_t __attribute__((vector_size(64)));
using HalfWords = std::uint32_t __attribute__((vector_size(32)));

#if defined(__AVX512BF16__)

/// Returns sixteen pairs (low[i], high[i]).
ZOO_INLINE Words zip(const Lanes& low, const Lanes& high) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7,
                                         22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const auto halves = bits<__m512i>(_mm512_cvtne2ps_pbh(__m512(high), __m512(low)));
  return bits<Words>(_mm512_permutexvar_epi16(order, halves));
}

/// Returns eight pairs of neighbours.
ZOO_INLINE HalfWords squeeze(const Lanes& x) {
  return bits<HalfWords>(_mm512_cvtneps_pbh(__m512(x)));
}

/// Adds the products of pair `a` and the pairs of each lane of b to `sums`.
ZOO_INLINE Lanes add_products(const Lanes& sums, std::uint32_t a, const Words& b) {
  return Lanes(
      _mm512_dpbf16_ps(__m512(sums), __m512bh(_mm512_set1_epi32(static_cast<int>(a))), bits<__m512bh>(b)));
}

#else

// For compilers of other machines: without these instructions, nothing calls these kernels.
ZOO_INLINE Words rounded(const Lanes& x) {
  const Words word = bits<Words>(x);
  return (word + 0x7FFFU + (word >> 16 & 1U)) >> 16;
}

ZOO_INLINE Words zip(const Lanes& low, const Lanes& high) {
  return rounded(low) | rounded(high) << 16;
}

ZOO_INLINE HalfWords squeeze(const Lanes& x) {
  using Halves = std::uint16_t __attribute__((vector_size(32)));
  return bits<HalfWords>(__builtin_convertvector(rounded(x), Halves));
}

ZOO_INLINE Lanes add_products(Lanes sums, std::uint32_t a, const Words& b) {
  const Words both = Words{} + a;
  sums += bits<Lanes>(both << 16) * bits<Lanes>(b << 16);
  return sums + bits<Lanes>(both & 0xFFFF0000U) * bits<Lanes>(b & 0xFFFF0000U);
}

#endif

/// Converts sixteen bfloat16 to float32.
ZOO_INLINE Lanes widen(const std::uint32_t* from) {
  using Halves = std::uint16_t __attribute__((vector_size(32)));
  Halves halves;
  std::memcpy(&halves, from, sizeof halves);
  return bits<Lanes>(__builtin_convertvector(halves, Words) << 16);
}

ZOO_INLINE Words load_words(const std::uint32_t* from) {
  Words words;
  std::memcpy(&words, from, sizeof words);
  return words;
}

}  // namespace zoo::kernels
