#pragma once

// Elementary functions of vectors, with relative errors of about 1e-7.

#include "models/kernels/vector.h"

namespace zoo::kernels {

/// exp(x), x clamped to [-87, 88], as 2^n e^r with |r| <= ln 2 / 2 and the polynomial of Cephes' expf for
/// e^r.
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
  const IntegerLanes exponent = (converted<IntegerLanes>(n) + 127) << 23;
  return p * bits<Lanes>(exponent);
}

/// 1 / (1 + e^-x)
ZOO_INLINE Lanes sigmoid(Lanes x) { return 1.0F / (1.0F + exponential(-x)); }

/// tanh(x): below 0.625 the polynomial of Cephes' tanhf, since 1 - 2 / (e^2x + 1) cancels there.
ZOO_INLINE Lanes hyperbolic_tangent(Lanes x) {
  const Lanes size = select(x < 0, -x, x), s = x * x;
  Lanes p = s * -5.70498872745e-3F + 2.06390887954e-2F;
  p = p * s + -5.37397155531e-2F;
  p = p * s + 1.33314422036e-1F;
  p = p * s + -3.33332819422e-1F;
  const Lanes far = 1.0F - 2.0F / (exponential(2.0F * size) + 1.0F);
  return select(size < 0.625F, x + x * s * p, select(x < 0, -far, far));
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

/// Replaces scores [0, end), full vectors, by e^(scale (score - largest)), and hidden ones, -infinity, by 0.
/// Returns their sum, by which the caller divides for the softmax.
ZOO_INLINE float exponentials(float* scores, std::size_t end, float largest, float scale = 1) {
  Lanes sums = {};
  for (std::size_t j = 0; j < end; j += kLanes) {
    const Lanes score = load(scores + j);
    const Lanes x = select(score == -__builtin_inff(), Lanes{}, exponential((score - largest) * scale));
    store(scores + j, x);
    sums += x;
  }
  return sum_of(sums);
}

}  // namespace zoo::kernels
