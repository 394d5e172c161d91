#pragma once

#include <cstddef>
#include <cstring>

// The vectors of the kernels: GCC's and Clang's own, so that the same source compiles for each machine.
// Included only by kernels: everything is inlined, since the linker must not keep a function that was
// compiled for AVX-512 for the rest of the program. For the same reason kernels include no header of
// LibTorch.
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

/// The first `count` lanes, zeros behind them.
ZOO_INLINE Lanes load_some(const float* from, std::size_t count) {
  Lanes lanes = {};
  std::memcpy(&lanes, from, count * sizeof(float));
  return lanes;
}

ZOO_INLINE void store_some(float* to, const Lanes& lanes, std::size_t count) {
  std::memcpy(to, &lanes, count * sizeof(float));
}

/// The same bits as another type.
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

}  // namespace zoo::kernels
