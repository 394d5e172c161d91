#include "models/kernels/training/rows.h"
#include "models/kernels/vector.h"

namespace zoo::kernels::ZOO_KERNELS_FOR {
namespace {

template <class Vector> struct Product { Vector high, low; };

ZOO_INLINE Product<WordRegister> multiply(const WordRegister& x, std::uint32_t factor) {
#if defined(__AVX512F__)
  const auto wide = __m512i(x), factors = _mm512_set1_epi64(factor);
  const __m512i even = _mm512_mul_epu32(wide, factors),
                odd = _mm512_mul_epu32(_mm512_srli_epi64(wide, 32), factors);
  constexpr __mmask16 kOdd = 0xAAAA;
  return {WordRegister(_mm512_mask_blend_epi32(kOdd, _mm512_srli_epi64(even, 32), odd)),
          WordRegister(_mm512_mask_blend_epi32(kOdd, even, _mm512_slli_epi64(odd, 32)))};
#elif defined(__AVX2__)
  const auto wide = __m256i(x), factors = _mm256_set1_epi64x(factor);
  const __m256i even = _mm256_mul_epu32(wide, factors),
                odd = _mm256_mul_epu32(_mm256_srli_epi64(wide, 32), factors);
  return {WordRegister(_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA)),
          WordRegister(_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA))};
#elif defined(__aarch64__)
  const auto wide = uint32x4_t(x);
  const auto first = vreinterpretq_u32_u64(vmull_n_u32(vget_low_u32(wide), factor)),
             second = vreinterpretq_u32_u64(vmull_high_n_u32(wide, factor));
  return {WordRegister(vuzp2q_u32(first, second)), WordRegister(vuzp1q_u32(first, second))};
#else
  WordRegister high, low;
  for (std::size_t i = 0; i < kRegisterLanes; ++i) {
    const std::uint64_t wide = std::uint64_t{x[i]} * factor;
    high[i] = static_cast<std::uint32_t>(wide >> 32);
    low[i] = static_cast<std::uint32_t>(wide);
  }
  return {high, low};
#endif
}

template <class Half> ZOO_INLINE Product<Twice<Half>> multiply(const Twice<Half>& x, std::uint32_t factor) {
  const auto low = multiply(x.low, factor), high = multiply(x.high, factor);
  return {{low.high, high.high}, {low.low, high.low}};
}

struct FourWords {
  Words word[4];
};

// Philox4x32-10 of the counters (count, count >> 32, 0, 0), count = first, first + 1, …
ZOO_INLINE FourWords philox(std::uint64_t seed, std::uint64_t first) {
  // `first` is a multiple of the lanes, so nothing carries.
  Words c0 = bits<Words>(numbers_from(0)) + static_cast<std::uint32_t>(first),
        c1 = Words{} + static_cast<std::uint32_t>(first >> 32), c2 = {}, c3 = {};
  auto k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const Product<Words> a = multiply(c0, 0xD2511F53U), b = multiply(c2, 0xCD9E8D57U);
    c0 = b.high ^ c1 ^ k0;
    c1 = b.low;
    c2 = a.high ^ c3 ^ k1;
    c3 = a.low;
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return {{c0, c1, c2, c3}};
}

}  // namespace

void apply(const DropoutMask& mask, const float* x, float* to, std::size_t size, std::size_t first,
           std::size_t last) {
  for (std::size_t block = first; block < last; ++block) {
    const FourWords random = philox(mask.seed, std::uint64_t{block} * kLanes);
    for (std::size_t w = 0; w < 4; ++w) {
      const std::size_t at = block * kMaskBlock + w * kLanes;
      if (at >= size) break;
      const Lanes value = load_up_to(x + at, size - at);
      const Lanes kept = select(random.word[w] >= mask.threshold, value * mask.scale, Lanes{});
      store_up_to(to + at, kept, size - at);
    }
  }
}

}  // namespace zoo::kernels::ZOO_KERNELS_FOR
