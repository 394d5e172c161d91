// No include guard: each instruction set's file includes the folder's headers once, inside its own namespace.
// Dot product of a 32-bit word of activations, shared by 16 outputs, and 16 words of a weight, added to 16
// sums.

using Bytes = unsigned char __attribute__((vector_size(64)));
using Halves = unsigned short __attribute__((vector_size(64)));
using Words = unsigned __attribute__((vector_size(64)));

ZOO_INLINE Words load_words(const std::byte* from) {
  Words words;
  std::memcpy(&words, from, sizeof words);
  return words;
}

struct FloatDot {
  using Sums = Lanes;
  static ZOO_INLINE Sums add(Sums sums, const std::byte* activation, Words weights) {
    float factor;
    std::memcpy(&factor, activation, sizeof factor);
    return sums + all(factor) * bits<Lanes>(weights);
  }
};

struct BfloatDot {
  using Sums = Lanes;
  static ZOO_INLINE Sums add(Sums sums, const std::byte* activation, Words weights) {
    unsigned pair;
    std::memcpy(&pair, activation, sizeof pair);
#ifdef __AVX512BF16__
    return Sums(_mm512_dpbf16_ps(__m512(sums), __m512bh(_mm512_set1_epi32(static_cast<int>(pair))),
                                 __m512bh(bits<__m512i>(weights))));
#else
    const unsigned low = pair << 16, high = pair & 0xFFFF0000U;
    sums += all(bits<float>(low)) * bits<Lanes>(weights << 16);
    return sums + all(bits<float>(high)) * bits<Lanes>(weights & 0xFFFF0000U);
#endif
  }
};

/// Unsigned 8-bit weights, signed activations.
struct ByteDot {
  using Sums = IntegerLanes;
  static ZOO_INLINE Sums add(Sums sums, const std::byte* activation, Words weights) {
    int four;
    std::memcpy(&four, activation, sizeof four);
#if defined(__AVX512VNNI__)
    return Sums(_mm512_dpbusd_epi32(__m512i(sums), bits<__m512i>(weights), _mm512_set1_epi32(four)));
#elif defined(__AVX512BW__)
    // Even and odd bytes separately, since the mixed-sign byte instruction saturates.
    const __m512i w = bits<__m512i>(weights), a = _mm512_set1_epi32(four);
    const __m512i low = _mm512_set1_epi16(0xFF);
    const __m512i even =
        _mm512_madd_epi16(_mm512_and_si512(w, low), _mm512_srai_epi16(_mm512_slli_epi16(a, 8), 8));
    const __m512i odd = _mm512_madd_epi16(_mm512_srli_epi16(w, 8), _mm512_srai_epi16(a, 8));
    return sums + Sums(_mm512_add_epi32(even, odd));
#elif defined(__AVX2__)
    __m256i w[2], s[2];
    std::memcpy(w, &weights, sizeof w);
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
      sums += factor * IntegerLanes(weights >> 8 * i & 255U);
    }
    return sums;
#endif
  }
};
