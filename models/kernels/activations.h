#pragma once

#include "models/kernels/elementary.h"
#include "models/kernels/pointwise.h"

namespace zoo::kernels {

struct Identity {
  static ZOO_INLINE Lanes value(Lanes x) { return x; }
  static ZOO_INLINE Lanes slope(Lanes) { return all(1.0F); }
};

struct Relu {
  static ZOO_INLINE Lanes value(Lanes x) { return select(x > 0.0F, x, Lanes{}); }
  static ZOO_INLINE Lanes slope(Lanes x) { return select(x > 0.0F, all(1.0F), Lanes{}); }
};

struct Relu2 {
  static ZOO_INLINE Lanes value(Lanes x) { return Relu::value(x) * x; }
  static ZOO_INLINE Lanes slope(Lanes x) { return 2.0F * Relu::value(x); }
};

/// x Phi(x) (Hendrycks and Gimpel, 2016)
struct Gelu {
  static ZOO_INLINE Lanes distribution(Lanes x) { return 0.5F + 0.5F * error_function(x * 0.70710678F); }
  static ZOO_INLINE Lanes value(Lanes x) { return x * distribution(x); }
  static ZOO_INLINE Lanes slope(Lanes x) {
    return distribution(x) + x * 0.39894228F * exponential(-0.5F * x * x);
  }
};

/// Its approximation 0.5 x (1 + tanh(u)) = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3)
struct GeluTanh {
  static constexpr float kTwice = 1.5957691F, kCubic = 0.044715F;  // 2 sqrt(2 / pi)
  static ZOO_INLINE Lanes value(Lanes x) { return x * sigmoid(kTwice * (x + kCubic * x * x * x)); }
  static ZOO_INLINE Lanes slope(Lanes x) {
    const Lanes s = sigmoid(kTwice * (x + kCubic * x * x * x));
    return s + x * s * (1.0F - s) * kTwice * (1.0F + 3.0F * kCubic * x * x);
  }
};

/// x sigmoid(x)
struct Silu {
  static ZOO_INLINE Lanes value(Lanes x) { return x * sigmoid(x); }
  static ZOO_INLINE Lanes slope(Lanes x) {
    const Lanes s = sigmoid(x);
    return s + x * s * (1.0F - s);
  }
};

/// Calls visit() with the function that `f` names.
template <class Visit> ZOO_INLINE void with_function(Pointwise f, const Visit& visit) {
  switch (f) {
    case Pointwise::kNone: return visit(Identity{});
    case Pointwise::kRelu: return visit(Relu{});
    case Pointwise::kGelu: return visit(Gelu{});
    case Pointwise::kGeluTanh: return visit(GeluTanh{});
    case Pointwise::kSilu: return visit(Silu{});
    case Pointwise::kRelu2: return visit(Relu2{});
  }
}

}  // namespace zoo::kernels
