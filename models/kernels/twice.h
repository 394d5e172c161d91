#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

// Vectors wider than the machine's, made of halves: the compiler's own vectors of that width live in memory,
// these in registers. Everything is inlined for the reason in vector.h.
namespace zoo::kernels {

#define ZOO_INLINE __attribute__((always_inline)) inline

/// Two halves, each one of the compiler's vectors or itself made of halves.
template <class Half> struct Twice { Half low, high; };

template <class Vector> constexpr bool kHasHalves = false;
template <class Half> constexpr bool kHasHalves<Twice<Half>> = true;

template <class Vector> struct Elements {
  using Type = std::remove_cvref_t<decltype(std::declval<Vector&>()[0])>;
};
template <class Half> struct Elements<Twice<Half>> : Elements<Half> {};

/// The type of a vector's elements.
template <class Vector> using Element = typename Elements<Vector>::Type;

template <class Vector> constexpr std::size_t kLanesOf = sizeof(Vector) / sizeof(Element<Vector>);

template <class Vector> ZOO_INLINE Vector load(const void* from) {
  if constexpr (kHasHalves<Vector>) {
    using Half = decltype(Vector::low);
    return {load<Half>(from), load<Half>(static_cast<const std::byte*>(from) + sizeof(Half))};
  } else {
    Vector value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
}

template <class Vector> ZOO_INLINE void store(void* to, const Vector& value) {
  if constexpr (kHasHalves<Vector>) {
    store(to, value.low);
    store(static_cast<std::byte*>(to) + sizeof value.low, value.high);
  } else {
    std::memcpy(to, &value, sizeof value);
  }
}

/// Reinterprets the bits as another type.
template <class To, class From> ZOO_INLINE To bits(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  if constexpr (kHasHalves<To> && kHasHalves<From>) {
    return {bits<decltype(To::low)>(from.low), bits<decltype(To::low)>(from.high)};
  } else {
    return load<To>(&from);
  }
}

/// Converts the elements to those of a vector with as many lanes.
template <class To, class From> ZOO_INLINE To converted(const From& from) {
  if constexpr (kHasHalves<To> && kHasHalves<From>) {
    return {converted<decltype(To::low)>(from.low), converted<decltype(To::low)>(from.high)};
  } else {
    return __builtin_convertvector(from, To);
  }
}

/// Lane by lane: mask ? a : b.
template <class Mask, class Vector>
ZOO_INLINE Vector select(const Mask& mask, const Vector& a, const Vector& b) {
  if constexpr (kHasHalves<Vector>) {
    return {select(mask.low, a.low, b.low), select(mask.high, a.high, b.high)};
  } else {
    return mask ? a : b;
  }
}

/// The lanes' numbers from `first` on.
template <class Vector> ZOO_INLINE Vector counting_from(std::int32_t first) {
  if constexpr (kHasHalves<Vector>) {
    using Half = decltype(Vector::low);
    return {counting_from<Half>(first),
            counting_from<Half>(first + static_cast<std::int32_t>(kLanesOf<Half>))};
  } else if constexpr (kLanesOf<Vector> == 4) {
    return Vector{0, 1, 2, 3} + first;
  } else if constexpr (kLanesOf<Vector> == 8) {
    return Vector{0, 1, 2, 3, 4, 5, 6, 7} + first;
  } else {
    return Vector{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} + first;
  }
}

// A scalar operand becomes a vector with equal lanes.
#define ZOO_OPERATOR(op)                                                                                 \
  template <class Half> ZOO_INLINE Twice<Half> operator op(const Twice<Half>& a, const Twice<Half>& b) { \
    return {a.low op b.low, a.high op b.high};                                                           \
  }                                                                                                      \
  template <class Half, class Scalar>                                                                    \
  requires std::is_arithmetic_v<Scalar> ZOO_INLINE Twice<Half>                                           \
  operator op(const Twice<Half>& a, Scalar scalar) {                                                     \
    const auto b = static_cast<Element<Half>>(scalar);                                                   \
    return {a.low op b, a.high op b};                                                                    \
  }                                                                                                      \
  template <class Half, class Scalar>                                                                    \
  requires std::is_arithmetic_v<Scalar> ZOO_INLINE Twice<Half>                                           \
  operator op(Scalar scalar, const Twice<Half>& b) {                                                     \
    const auto a = static_cast<Element<Half>>(scalar);                                                   \
    return {a op b.low, a op b.high};                                                                    \
  }                                                                                                      \
  template <class Half, class Other>                                                                     \
  ZOO_INLINE Twice<Half>& operator op##=(Twice<Half>& a, const Other& b) {                               \
    return a = a op b;                                                                                   \
  }

ZOO_OPERATOR(+)
ZOO_OPERATOR(-)
ZOO_OPERATOR(*)
ZOO_OPERATOR(/)
ZOO_OPERATOR(&)
ZOO_OPERATOR(|)
ZOO_OPERATOR(^)
ZOO_OPERATOR(<<)
ZOO_OPERATOR(>>)
#undef ZOO_OPERATOR

template <class Half> ZOO_INLINE Twice<Half> operator-(const Twice<Half>& x) { return {-x.low, -x.high}; }

template <class Vector> struct Masks {
  using Type = std::remove_cvref_t<decltype(std::declval<Vector&>() > std::declval<Vector&>())>;
};
template <class Half> struct Masks<Twice<Half>> { using Type = Twice<typename Masks<Half>::Type>; };

#define ZOO_COMPARISON(op)                                                                               \
  template <class Half>                                                                                  \
  ZOO_INLINE typename Masks<Twice<Half>>::Type operator op(const Twice<Half>& a, const Twice<Half>& b) { \
    return {a.low op b.low, a.high op b.high};                                                           \
  }                                                                                                      \
  template <class Half, class Scalar>                                                                    \
  requires std::is_arithmetic_v<Scalar> ZOO_INLINE typename Masks<Twice<Half>>::Type operator op(        \
      const Twice<Half>& a, Scalar scalar) {                                                             \
    const auto b = static_cast<Element<Half>>(scalar);                                                   \
    return {a.low op b, a.high op b};                                                                    \
  }

ZOO_COMPARISON(<)
ZOO_COMPARISON(>)
ZOO_COMPARISON(>=)
ZOO_COMPARISON(==)
#undef ZOO_COMPARISON

}  // namespace zoo::kernels
