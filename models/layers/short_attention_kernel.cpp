#include "models/layers/short_attention_kernel.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "models/kernels/functions.h"
#include "models/kernels/turn.h"
#include "models/layers/head_product.h"

namespace zoo::short_attention {
namespace {

using head_product::Extent;
using head_product::kRows;
using head_product::sum_of;
using kernels::exponential;
using kernels::kLanes;
using kernels::Lanes;

struct FloatDot {
  using Element = float;
  static ZOO_INLINE Lanes load(const float* from) { return kernels::load(from); }
  static ZOO_INLINE Lanes add(const Lanes& sums, float factor, const Lanes& columns) {
    return sums + factor * columns;
  }
};

template <class ExtentOf>
ZOO_INLINE void multiply(const head_product::Factor<float>& a, const float* b, std::size_t b_row, float* c,
                         std::size_t c_row, std::size_t rows, const ExtentOf& extent) {
  head_product::multiply<FloatDot>(a, b, b_row, c, c_row, rows, extent);
}

// Row i of the scores becomes softmax over its first i + 1 entries; the rest of its last vector becomes zero.
void softmax_row(float* row, std::size_t i) {
  const std::size_t seen = i + 1, end = padded(seen);
  for (std::size_t j = seen; j < end; ++j) row[j] = -INFINITY;
  Lanes most = Lanes{} - INFINITY;
  for (std::size_t j = 0; j < end; j += kLanes) {
    Lanes x;
    std::memcpy(&x, row + j, sizeof x);
    most = x > most ? x : most;
  }
  float largest = most[0];
  for (std::size_t l = 1; l < kLanes; ++l) largest = std::max(largest, most[l]);
  Lanes sums = {};
  for (std::size_t j = 0; j < end; j += kLanes) {
    Lanes x;
    std::memcpy(&x, row + j, sizeof x);
    x = exponential(x - largest);
    std::memcpy(row + j, &x, sizeof x);
    if (j + kLanes < end) sums += x;
  }
  // exponential() gives e^-87 for what is hidden; zero is meant.
  for (std::size_t j = seen; j < end; ++j) row[j] = 0;
  float sum = sum_of(sums);
  for (std::size_t j = end - kLanes; j < seen; ++j) sum += row[j];
  const float inverse = 1.0F / sum;
  for (std::size_t j = 0; j < seen; ++j) row[j] *= inverse;
}

// dS = P * (dP - sum of dP * P), in place of dP; zero to the end of the row's last vector.
void softmax_gradient_row(const float* weights, float* gradient, std::size_t i) {
  const std::size_t end = padded(i + 1);
  for (std::size_t j = i + 1; j < end; ++j) gradient[j] = 0;
  Lanes products = {};
  for (std::size_t j = 0; j < end; j += kLanes) {
    Lanes p, g;
    std::memcpy(&p, weights + j, sizeof p);
    std::memcpy(&g, gradient + j, sizeof g);
    products += p * g;
  }
  const float sum = sum_of(products);
  for (std::size_t j = 0; j < end; ++j) gradient[j] = weights[j] * (gradient[j] - sum);
}

// Rows of D floats into padded rows, times `scale`; rows and columns beyond the data are zero.
void pack(const float* from, std::size_t stride, const Head& head, float scale, float* to) {
  const std::size_t width = padded(head.head_dim), rows = padded(head.length);
  std::memset(to, 0, rows * width * sizeof(float));
  for (std::size_t t = 0; t < head.length; ++t) {
    for (std::size_t d = 0; d < head.head_dim; ++d) to[t * width + d] = scale * from[t * stride + d];
  }
}

// The same, turned: [D, padded(T)].
void pack_turned(const float* from, std::size_t stride, const Head& head, float* to) {
  const std::size_t width = padded(head.length);
  for (std::size_t t = 0; t < head.length; t += kLanes) {
    for (std::size_t d = 0; d < head.head_dim; d += kLanes) {
      const std::size_t columns = std::min(head.head_dim - d, kLanes);
      Lanes block[kLanes] = {};
      for (std::size_t r = 0; r < kLanes && t + r < head.length; ++r)
        block[r] = kernels::load_some(from + (t + r) * stride + d, columns);
      kernels::turn(block);
      for (std::size_t i = 0; i < kLanes; ++i) kernels::store(to + (d + i) * width + t, block[i]);
    }
  }
}

void unpack(const float* from, const Head& head, float scale, float* to, std::size_t stride) {
  const std::size_t width = padded(head.head_dim);
  for (std::size_t t = 0; t < head.length; ++t) {
    for (std::size_t d = 0; d < head.head_dim; ++d) to[t * stride + d] = scale * from[t * width + d];
  }
}

float scale_of(const Head& head) {
  return 1.0F / std::sqrt(static_cast<float>(head.head_dim));
}

}  // namespace

std::size_t padded(std::size_t size) {
  return head_product::padded(size);
}

std::size_t weights_size(std::size_t length) {
  return length * padded(length);
}

std::size_t scratch_size(std::size_t length, std::size_t head_dim) {
  return 5 * padded(length) * padded(head_dim) + padded(length) * padded(length);
}

void forward(const Head& head, float* weights, float* output, std::size_t output_stride, float* scratch) {
  const std::size_t T = padded(head.length), D = padded(head.head_dim);
  float *q = scratch, *k_turned = q + T * D, *v = k_turned + T * D, *result = v + T * D,
        *scores = result + T * D;
  pack(head.q, head.stride, head, scale_of(head), q);
  pack_turned(head.k, head.stride, head, k_turned);
  pack(head.v, head.stride, head, 1.0F, v);
  multiply({q, D, 1}, k_turned, T, scores, T, T, [&](std::size_t i) {
    return Extent{0, head.head_dim, padded(i + kRows)};
  });
  for (std::size_t i = 0; i < T; ++i) softmax_row(scores + i * T, i);
  multiply({scores, T, 1}, v, D, result, D, T, [&](std::size_t i) { return Extent{0, i + kRows, D}; });
  std::memcpy(weights, scores, head.length * T * sizeof(float));
  unpack(result, head, 1.0F, output, output_stride);
}

void backward(const Head& head, const float* weights, const float* output_gradient, std::size_t output_stride,
              const HeadGradient& gradient, float* scratch) {
  const std::size_t T = padded(head.length), D = padded(head.head_dim);
  float *q = scratch, *k = q + T * D, *v_turned = k + T * D, *result_gradient = v_turned + T * D,
        *product = result_gradient + T * D, *scores = product + T * D;
  const auto before = [&](std::size_t i) { return Extent{0, i + kRows, D}; };
  const auto after = [&](std::size_t j) { return Extent{j, head.length, D}; };
  pack(output_gradient, output_stride, head, 1.0F, result_gradient);

  // dV = P^T dO. A row of tiles may reach past T; what it reads of the weights is the next head's or padding.
  multiply({weights, 1, T}, result_gradient, D, product, D, T, after);
  unpack(product, head, 1.0F, gradient.v, head.stride);

  // dP = dO V^T, then dS.
  pack_turned(head.v, head.stride, head, v_turned);
  multiply({result_gradient, D, 1}, v_turned, T, scores, T, T, [&](std::size_t i) {
    return Extent{0, head.head_dim, padded(i + kRows)};
  });
  for (std::size_t i = 0; i < head.length; ++i) softmax_gradient_row(weights + i * T, scores + i * T, i);

  // dQ = dS K / sqrt(D), dK = dS^T Q / sqrt(D).
  pack(head.k, head.stride, head, 1.0F, k);
  multiply({scores, T, 1}, k, D, product, D, T, before);
  unpack(product, head, scale_of(head), gradient.q, head.stride);
  pack(head.q, head.stride, head, scale_of(head), q);
  multiply({scores, 1, T}, q, D, product, D, T, after);
  unpack(product, head, 1.0F, gradient.k, head.stride);
}

}  // namespace zoo::short_attention
