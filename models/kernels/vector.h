#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "models/kernels/twice.h"

// Vectors of 16 lanes on every machine, built on the vector extensions of GCC and Clang. Only kernels include
// this. Everything is inlined: otherwise the linker might choose a function compiled for AVX-512 for the rest
// of the program. For the same reason kernels include no LibTorch header.
namespace zoo::kernels {

constexpr std::size_t kLanes = 16;

#if defined(__AVX512F__)
constexpr std::size_t kRegisterLanes = 16;
#elif defined(__AVX2__)
constexpr std::size_t kRegisterLanes = 8;
#else
constexpr std::size_t kRegisterLanes = 4;
#endif

// One register.
using Register = float __attribute__((vector_size(4 * kRegisterLanes)));
using IntegerRegister = std::int32_t __attribute__((vector_size(4 * kRegisterLanes)));
using WordRegister = std::uint32_t __attribute__((vector_size(4 * kRegisterLanes)));
using ShortRegister = std::int16_t __attribute__((vector_size(4 * kRegisterLanes)));

#if defined(__AVX512F__)
template <class Type> using InRegisters = Type;
using Halves = std::uint16_t __attribute__((vector_size(32)));  // 16 bfloat16
#elif defined(__AVX2__)
template <class Type> using InRegisters = Twice<Type>;
using Halves = std::uint16_t __attribute__((vector_size(32)));
#else
template <class Type> using InRegisters = Twice<Twice<Type>>;
using Halves = Twice<std::uint16_t __attribute__((vector_size(16)))>;
#endif

using Lanes = InRegisters<Register>;
using IntegerLanes = InRegisters<IntegerRegister>;
using Words = InRegisters<WordRegister>;  // also: 16 pairs of bfloat16, the earlier low

ZOO_INLINE Lanes load(const void* from) { return load<Lanes>(from); }

ZOO_INLINE IntegerLanes numbers_from(std::int32_t first) { return counting_from<IntegerLanes>(first); }

ZOO_INLINE constexpr std::size_t vectors_of(std::size_t size) { return (size + kLanes - 1) / kLanes; }

/// Rounds up to full vectors.
ZOO_INLINE constexpr std::size_t padded(std::size_t size) { return vectors_of(size) * kLanes; }

/// std::min of sizes.
ZOO_INLINE constexpr std::size_t smaller(std::size_t a, std::size_t b) { return a < b ? a : b; }

/// Loads the first `count` lanes; the others are zero.
ZOO_INLINE Lanes load_some(const float* from, std::size_t count) {
  Lanes lanes = {};
  std::memcpy(&lanes, from, count * sizeof(float));
  return lanes;
}

/// The same for any count: loads at most a vector.
ZOO_INLINE Lanes load_up_to(const float* from, std::size_t count) {
  return count >= kLanes ? load(from) : load_some(from, count);
}

ZOO_INLINE void store_some(float* to, const Lanes& lanes, std::size_t count) {
  std::memcpy(to, &lanes, count * sizeof(float));
}

ZOO_INLINE void store_up_to(float* to, const Lanes& lanes, std::size_t count) {
  if (count >= kLanes) store(to, lanes);
  else store_some(to, lanes, count);
}

/// Calls visit(position, read, write) for the vectors of [0, size). Lanes past the end read as zeros and are
/// not written.
template <class Visit> ZOO_INLINE void for_each_vector(std::size_t size, const Visit& visit) {
  // Lambdas, because a pointer to load() or store() would force an out-of-line copy.
  const auto read = [](const float* from) { return load(from); };
  const auto write = [](float* to, const Lanes& lanes) { store(to, lanes); };
  std::size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) visit(i, read, write);
  if (i == size) return;
  const std::size_t left = size - i;
  visit(
      i, [=](const float* from) { return load_some(from, left); },
      [=](float* to, const Lanes& lanes) { store_some(to, lanes, left); });
}

ZOO_INLINE Lanes all(float value) { return value - Lanes{}; }

template <class Vector> ZOO_INLINE Vector larger(const Vector& a, const Vector& b) {
  return select(a > b, a, b);
}

ZOO_INLINE Lanes clamp(Lanes x, float low, float high) {
  x = select(x < low, all(low), x);
  return select(x > high, all(high), x);
}

// Lists of a register's lanes.
#define ZOO_FOUR(f) f(0), f(1), f(2), f(3)
#define ZOO_EIGHT(f) ZOO_FOUR(f), f(4), f(5), f(6), f(7)
#define ZOO_SIXTEEN(f) ZOO_EIGHT(f), f(8), f(9), f(10), f(11), f(12), f(13), f(14), f(15)
#if defined(__AVX512F__)
#define ZOO_REGISTER(f) ZOO_SIXTEEN(f)
#elif defined(__AVX2__)
#define ZOO_REGISTER(f) ZOO_EIGHT(f)
#else
#define ZOO_REGISTER(f) ZOO_FOUR(f)
#endif

/// Rotates lanes: lane i gets lane (i + S) % the number of lanes.
template <std::size_t S> ZOO_INLINE Register rotated(const Register& x) {
#define ZOO_FROM(i) ((i) + S) % kRegisterLanes
  return __builtin_shufflevector(x, x, ZOO_REGISTER(ZOO_FROM));
#undef ZOO_FROM
}

/// Combines halves with halves by f: four steps, not sixteen.
template <std::size_t S = kRegisterLanes / 2, class Vector, class Combine>
ZOO_INLINE float reduced(const Vector& x, const Combine& f) {
  if constexpr (kHasHalves<Vector>) {
    return reduced<S>(f(x.low, x.high), f);
  } else if constexpr (S > 0) {
    return reduced<S / 2>(f(x, rotated<S>(x)), f);
  } else {
    return x[0];
  }
}

ZOO_INLINE float sum_of(const Lanes& x) {
  return reduced(
      x, [](const auto& a, const auto& b) __attribute__((always_inline)) { return a + b; });
}

ZOO_INLINE float largest_of(const Lanes& x) {
  return reduced(
      x, [](const auto& a, const auto& b) __attribute__((always_inline)) { return larger(a, b); });
}

ZOO_INLINE std::int32_t sum_of(const IntegerLanes& x) {
  std::int32_t lanes[kLanes], sum = 0;
  store(lanes, x);
  for (const std::int32_t lane : lanes) sum += lane;
  return sum;
}

ZOO_INLINE Register square_root(const Register& x) {
#if defined(__AVX512F__)
  return Register(_mm512_maskz_sqrt_ps(0xFFFF, __m512(x)));
#elif defined(__AVX2__)
  return Register(_mm256_sqrt_ps(__m256(x)));
#elif defined(__x86_64__)
  return Register(_mm_sqrt_ps(__m128(x)));
#elif defined(__aarch64__)
  return Register(vsqrtq_f32(float32x4_t(x)));
#else
  Register root;
  for (std::size_t i = 0; i < kRegisterLanes; ++i) root[i] = __builtin_sqrtf(x[i]);
  return root;
#endif
}

template <class Half> ZOO_INLINE Twice<Half> square_root(const Twice<Half>& x) {
  return {square_root(x.low), square_root(x.high)};
}

/// One step of transpose(): swaps lane l of x with lane l ^ S of y where they differ in that bit.
template <std::size_t S, class Vector> ZOO_INLINE void exchange(Vector& x, Vector& y) {
  if constexpr (!kHasHalves<Vector>) {
#define ZOO_LOW(l) ((l)&S ? kRegisterLanes + (l)-S : (l))
#define ZOO_HIGH(l) ((l)&S ? kRegisterLanes + (l) : (l) + S)
    const Vector low = __builtin_shufflevector(x, y, ZOO_REGISTER(ZOO_LOW));
    y = __builtin_shufflevector(x, y, ZOO_REGISTER(ZOO_HIGH));
    x = low;
#undef ZOO_HIGH
#undef ZOO_LOW
  } else if constexpr (S == kLanesOf<Vector> / 2) {
    const Vector low{x.low, y.low};
    y = {x.high, y.high};
    x = low;
  } else {
    exchange<S>(x.low, y.low);
    exchange<S>(x.high, y.high);
  }
}

template <std::size_t S> ZOO_INLINE void exchange(Lanes (&rows)[kLanes]) {
  for (std::size_t i = 0; i < kLanes; ++i)
    if ((i & S) == 0) exchange<S>(rows[i], rows[i + S]);
}

ZOO_INLINE void transpose(Lanes (&rows)[kLanes]) {
  exchange<1>(rows);
  exchange<2>(rows);
  exchange<4>(rows);
  exchange<8>(rows);
}

/// Each word's float32 rounded to bfloat16, in its lower half: nearest, ties to even.
ZOO_INLINE Words rounded_to_bfloat16(const Lanes& x) {
  const Words word = bits<Words>(x);
  return (word + 0x7FFFU + (word >> 16 & 1U)) >> 16;
}

ZOO_INLINE Lanes low_half(const Words& pairs) { return bits<Lanes>(pairs << 16); }

ZOO_INLINE Lanes high_half(const Words& pairs) { return bits<Lanes>(pairs & 0xFFFF0000U); }

#if defined(__AVX512F__)

ZOO_INLINE Words widened(const Halves& halves) { return converted<Words>(halves); }
/// The lower halves of words.
ZOO_INLINE Halves narrowed(const Words& words) { return converted<Halves>(words); }
/// Integers from sixteen signed bytes.
ZOO_INLINE IntegerLanes from_bytes(const void* from) {
  return IntegerLanes(_mm512_maskz_cvtepi8_epi32(0xFFFF, _mm_loadu_si128(static_cast<const __m128i*>(from))));
}
/// Writes integers that fit as sixteen signed bytes.
ZOO_INLINE void store_bytes(void* to, const IntegerLanes& x) {
  using Bytes = signed char __attribute__((vector_size(16)));
  store(to, converted<Bytes>(x));
}

#elif defined(__AVX2__)

ZOO_INLINE Words widened(const Halves& halves) {
  const auto both = bits<__m256i>(halves);
  return {WordRegister(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(both))),
          WordRegister(_mm256_cvtepu16_epi32(_mm256_extracti128_si256(both, 1)))};
}
ZOO_INLINE Halves narrowed(const Words& words) {
  const __m256i low = _mm256_set1_epi32(0xFFFF);
  const __m256i mixed = _mm256_packus_epi32(_mm256_and_si256(__m256i(words.low), low),
                                            _mm256_and_si256(__m256i(words.high), low));
  return bits<Halves>(_mm256_permute4x64_epi64(mixed, 0xD8));
}
ZOO_INLINE IntegerLanes from_bytes(const void* from) {
  const __m128i bytes = _mm_loadu_si128(static_cast<const __m128i*>(from));
  return {IntegerRegister(_mm256_cvtepi8_epi32(bytes)),
          IntegerRegister(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
}
ZOO_INLINE void store_bytes(void* to, const IntegerLanes& x) {
  const __m256i shorts = _mm256_permute4x64_epi64(_mm256_packs_epi32(__m256i(x.low), __m256i(x.high)), 0xD8);
  const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(shorts), _mm256_extracti128_si256(shorts, 1));
  _mm_storeu_si128(static_cast<__m128i*>(to), bytes);
}

#else

ZOO_INLINE Words widened(const Halves& halves) {
  const auto of_part = [](const auto& part) __attribute__((always_inline)) {
    const auto zeros = part ^ part;
    return Twice<WordRegister>{
        bits<WordRegister>(__builtin_shufflevector(part, zeros, 0, 8, 1, 9, 2, 10, 3, 11)),
        bits<WordRegister>(__builtin_shufflevector(part, zeros, 4, 12, 5, 13, 6, 14, 7, 15))};
  };
  return {of_part(halves.low), of_part(halves.high)};
}
ZOO_INLINE Halves narrowed(const Words& words) {
  const auto of_parts = [](const Twice<WordRegister>& parts) __attribute__((always_inline)) {
    using Shorts = decltype(Halves::low);
    return __builtin_shufflevector(bits<Shorts>(parts.low), bits<Shorts>(parts.high), 0, 2, 4, 6, 8, 10, 12,
                                   14);
  };
  return {of_parts(words.low), of_parts(words.high)};
}
#if defined(__aarch64__)
ZOO_INLINE IntegerLanes from_bytes(const void* from) {
  const int8x16_t bytes = vld1q_s8(static_cast<const signed char*>(from));
  const auto of_shorts = [](int16x8_t shorts) __attribute__((always_inline)) {
    return Twice<IntegerRegister>{IntegerRegister(vmovl_s16(vget_low_s16(shorts))),
                                  IntegerRegister(vmovl_high_s16(shorts))};
  };
  return {of_shorts(vmovl_s8(vget_low_s8(bytes))), of_shorts(vmovl_high_s8(bytes))};
}
ZOO_INLINE void store_bytes(void* to, const IntegerLanes& x) {
  const auto shorts = [](const Twice<IntegerRegister>& part) __attribute__((always_inline)) {
    return vmovn_high_s32(vmovn_s32(int32x4_t(part.low)), int32x4_t(part.high));
  };
  vst1q_s8(static_cast<signed char*>(to), vmovn_high_s16(vmovn_s16(shorts(x.low)), shorts(x.high)));
}
#else
ZOO_INLINE IntegerLanes from_bytes(const void* from) {
  std::int32_t lanes[kLanes];
  for (std::size_t i = 0; i < kLanes; ++i) lanes[i] = static_cast<const signed char*>(from)[i];
  return load<IntegerLanes>(lanes);
}
ZOO_INLINE void store_bytes(void* to, const IntegerLanes& x) {
  std::int32_t lanes[kLanes];
  store(lanes, x);
  for (std::size_t i = 0; i < kLanes; ++i)
    static_cast<signed char*>(to)[i] = static_cast<signed char>(lanes[i]);
}
#endif

#endif

ZOO_INLINE Lanes from_bfloat16(const Halves& halves) { return bits<Lanes>(widened(halves) << 16); }

#if defined(__AVX512BF16__)

ZOO_INLINE Halves to_bfloat16(const Lanes& x) { return bits<Halves>(_mm512_cvtneps_pbh(__m512(x))); }

/// Returns sixteen pairs (low[i], high[i]).
ZOO_INLINE Words zip(const Lanes& low, const Lanes& high) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7,
                                         22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const auto halves = bits<__m512i>(_mm512_cvtne2ps_pbh(__m512(high), __m512(low)));
  return bits<Words>(_mm512_permutexvar_epi16(order, halves));
}

#else

ZOO_INLINE Halves to_bfloat16(const Lanes& x) { return narrowed(rounded_to_bfloat16(x)); }

ZOO_INLINE Words zip(const Lanes& low, const Lanes& high) {
  return rounded_to_bfloat16(low) | rounded_to_bfloat16(high) << 16;
}

#endif

}  // namespace zoo::kernels
