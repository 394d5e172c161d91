#pragma once

#include "models/kernels/functions.h"

namespace zoo::kernels {

struct Relu {
  static ZOO_INLINE Lanes value(Lanes x) { return x > 0.0F ? x : Lanes{}; }
  static ZOO_INLINE Lanes slope(Lanes x) { return x > 0.0F ? all(1.0F) : Lanes{}; }
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

}  // namespace zoo::kernels
