#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

// Vectors of the kernels: GCC's and Clang's own, so that the same source compiles for each machine. Only
// kernels include this. Everything is inlined, since the linker must not keep a function compiled for AVX-512
// for the rest of the program. For the same reason kernels include no LibTorch header.
namespace zoo::kernels {

constexpr std::size_t kLanes = 16;
using Lanes = float __attribute__((vector_size(64)));
using IntegerLanes = std::int32_t __attribute__((vector_size(64)));
using Words = std::uint32_t __attribute__((vector_size(64)));   // also: 16 pairs of bfloat16, the earlier low
using Halves = std::uint16_t __attribute__((vector_size(32)));  // 16 bfloat16

#define ZOO_INLINE __attribute__((always_inline)) inline

ZOO_INLINE constexpr std::size_t vectors_of(std::size_t size) {
  return (size + kLanes - 1) / kLanes;
}

/// Rounds up to whole vectors.
ZOO_INLINE constexpr std::size_t padded(std::size_t size) {
  return vectors_of(size) * kLanes;
}

template <class T = Lanes>
ZOO_INLINE T load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
ZOO_INLINE void store(void* to, const T& value) {
  std::memcpy(to, &value, sizeof value);
}

/// The lanes' numbers from `first` on.
ZOO_INLINE IntegerLanes numbers_from(std::int32_t first) {
  return IntegerLanes{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} + first;
}

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

/// Calls visit(position, read, write) for the vectors of [0, size). Lanes past the end read as zeros and are
/// not written.
template <class Visit>
ZOO_INLINE void for_each_vector(std::size_t size, const Visit& visit) {
  // Lambdas, since a pointer to load() or store() would make the compiler keep a copy of them.
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

/// Reinterprets the bits as another type.
template <class To, class From>
ZOO_INLINE To bits(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  return load<To>(&from);
}

ZOO_INLINE Lanes all(float value) {
  return Lanes{} + value;
}

ZOO_INLINE Lanes larger(const Lanes& a, const Lanes& b) {
  return a > b ? a : b;
}

ZOO_INLINE Lanes clamp(Lanes x, float low, float high) {
  x = x < low ? all(low) : x;
  return x > high ? all(high) : x;
}

#define ZOO_SIXTEEN(f) \
  f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7), f(8), f(9), f(10), f(11), f(12), f(13), f(14), f(15)

/// Rotates lanes: lane i gets lane (i + S) % 16.
template <std::size_t S>
ZOO_INLINE Lanes rotated(const Lanes& x) {
#define ZOO_FROM(i) ((i) + S) % 16
  return __builtin_shufflevector(x, x, ZOO_SIXTEEN(ZOO_FROM));
#undef ZOO_FROM
}

/// Adds halves to halves: four steps, not sixteen.
ZOO_INLINE float sum_of(Lanes x) {
  x += rotated<8>(x);
  x += rotated<4>(x);
  x += rotated<2>(x);
  x += rotated<1>(x);
  return x[0];
}

ZOO_INLINE float largest_of(Lanes x) {
  x = larger(x, rotated<8>(x));
  x = larger(x, rotated<4>(x));
  x = larger(x, rotated<2>(x));
  return larger(x, rotated<1>(x))[0];
}

/// One step of transpose(): swaps lane l of row i with lane l ^ S of row i ^ S where they differ in that bit.
template <std::size_t S>
ZOO_INLINE void exchange(Lanes (&rows)[kLanes]) {
#define ZOO_LOW(l) ((l)&S ? 16 + (l)-S : (l))
#define ZOO_HIGH(l) ((l)&S ? 16 + (l) : (l) + S)
  for (std::size_t i = 0; i < kLanes; ++i) {
    if ((i & S) != 0) continue;
    const Lanes x = rows[i], y = rows[i + S];
    rows[i] = __builtin_shufflevector(x, y, ZOO_SIXTEEN(ZOO_LOW));
    rows[i + S] = __builtin_shufflevector(x, y, ZOO_SIXTEEN(ZOO_HIGH));
  }
#undef ZOO_HIGH
#undef ZOO_LOW
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

ZOO_INLINE Lanes low_half(const Words& pairs) {
  return bits<Lanes>(pairs << 16);
}

ZOO_INLINE Lanes high_half(const Words& pairs) {
  return bits<Lanes>(pairs & 0xFFFF0000U);
}

ZOO_INLINE Lanes from_bfloat16(const Halves& halves) {
  return bits<Lanes>(__builtin_convertvector(halves, Words) << 16);
}

#if defined(__AVX512BF16__)

ZOO_INLINE Halves to_bfloat16(const Lanes& x) {
  return bits<Halves>(_mm512_cvtneps_pbh(__m512(x)));
}

/// Returns sixteen pairs (low[i], high[i]).
ZOO_INLINE Words zip(const Lanes& low, const Lanes& high) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7,
                                         22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const auto halves = bits<__m512i>(_mm512_cvtne2ps_pbh(__m512(high), __m512(low)));
  return bits<Words>(_mm512_permutexvar_epi16(order, halves));
}

#else

ZOO_INLINE Halves to_bfloat16(const Lanes& x) {
  return __builtin_convertvector(rounded_to_bfloat16(x), Halves);
}

ZOO_INLINE Words zip(const Lanes& low, const Lanes& high) {
  return rounded_to_bfloat16(low) | rounded_to_bfloat16(high) << 16;
}

#endif

// Elementary functions, with relative errors of about 1e-7.

/// exp(x) for x in [-87, 88]; clamps other x. Computes 2^n e^r with |r| <= ln 2 / 2, e^r by the polynomial of
/// Cephes' expf.
ZOO_INLINE Lanes exponential(Lanes x) {
  x = clamp(x, -87.0F, 88.0F);
  const float magic = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const Lanes n = (x * 1.44269504F + magic) - magic;
  const Lanes r = x - n * 0.693359375F + n * 2.12194440e-4F;
  Lanes p = r * 1.9875691500e-4F + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const IntegerLanes exponent = (__builtin_convertvector(n, IntegerLanes) + 127) << 23;
  return p * bits<Lanes>(exponent);
}

/// 1 / (1 + e^-x)
ZOO_INLINE Lanes sigmoid(Lanes x) {
  return 1.0F / (1.0F + exponential(-x));
}

/// tanh(x): below 0.625 the polynomial of Cephes' tanhf, since 1 - 2 / (e^2x + 1) cancels there.
ZOO_INLINE Lanes hyperbolic_tangent(Lanes x) {
  const Lanes size = x < 0 ? -x : x, s = x * x;
  Lanes p = s * -5.70498872745e-3F + 2.06390887954e-2F;
  p = p * s + -5.37397155531e-2F;
  p = p * s + 1.33314422036e-1F;
  p = p * s + -3.33332819422e-1F;
  const Lanes far = 1.0F - 2.0F / (exponential(2.0F * size) + 1.0F);
  return size < 0.625F ? x + x * s * p : (x < 0 ? -far : far);
}

/// Error function as x P(x^2) / Q(x^2) on [-4, 4]; outside it is -1 or 1 in float32 (coefficients: Eigen).
ZOO_INLINE Lanes error_function(Lanes x) {
  x = clamp(x, -4.0F, 4.0F);
  const Lanes s = x * x;
  Lanes p = s * -2.72614225801306e-10F + 2.77068142495902e-08F;
  p = p * s + -2.10102402082508e-06F;
  p = p * s + -5.69250639462346e-05F;
  p = p * s + -7.34990630326855e-04F;
  p = p * s + -2.95459980854025e-03F;
  p = p * s + -1.60960333262415e-02F;
  Lanes q = s * -1.45660718464996e-05F + -2.13374055278905e-04F;
  q = q * s + -1.68282697438203e-03F;
  q = q * s + -7.37332916720468e-03F;
  q = q * s + -1.42647390514189e-02F;
  return x * p / q;
}

}  // namespace zoo::kernels
