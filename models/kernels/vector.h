#pragma once

#include <cstddef>
#include <cstring>

// Vectors of the kernels: GCC's and Clang's own, so that the same source compiles for each machine. Only
// kernels include this. Everything is inlined, since the linker must not keep a function compiled for AVX-512
// for the rest of the program. For the same reason kernels include no LibTorch header.
namespace zoo::kernels {

constexpr std::size_t kLanes = 16;
using Lanes = float __attribute__((vector_size(64)));
using IntegerLanes = int __attribute__((vector_size(64)));

#define ZOO_INLINE __attribute__((always_inline)) inline

ZOO_INLINE Lanes load(const float* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

ZOO_INLINE void store(float* to, const Lanes& lanes) {
  std::memcpy(to, &lanes, sizeof lanes);
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
  std::size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) visit(i, load, store);
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
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

ZOO_INLINE Lanes all(float value) {
  return Lanes{} + value;
}

ZOO_INLINE Lanes larger(const Lanes& a, const Lanes& b) {
  return a > b ? a : b;
}

/// Rotates lanes: lane i gets lane (i + S) % 16.
template <std::size_t S>
ZOO_INLINE Lanes rotated(const Lanes& x) {
#define ZOO_FROM(i) ((i) + S) % 16
  return __builtin_shufflevector(x, x, ZOO_FROM(0), ZOO_FROM(1), ZOO_FROM(2), ZOO_FROM(3), ZOO_FROM(4),
                                 ZOO_FROM(5), ZOO_FROM(6), ZOO_FROM(7), ZOO_FROM(8), ZOO_FROM(9),
                                 ZOO_FROM(10), ZOO_FROM(11), ZOO_FROM(12), ZOO_FROM(13), ZOO_FROM(14),
                                 ZOO_FROM(15));
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

}  // namespace zoo::kernels
