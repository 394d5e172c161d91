#include "models/layers/short_attention_kernel.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "models/kernels/functions.h"
#include "models/kernels/turn.h"
#include "models/layers/head_product.h"

namespace zoo::short_attention {
namespace {

using namespace kernels;
using head_product::causal;
using head_product::Extent;
using head_product::kRows;

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

// Row i of the scores becomes softmax of its first i + 1 entries times `scale`; the rest of its last vector
// becomes zero.
ZOO_INLINE void soften(float* row, std::size_t i, float scale) {
  const std::size_t end = padded(i + 1), last = end - kLanes;
  store(row + last, causal(load(row + last), i, last, -INFINITY));
  Lanes most = load(row);
  for (std::size_t j = kLanes; j < end; j += kLanes) most = larger(most, load(row + j));
  const float largest = largest_of(most);
  Lanes sums = {};
  for (std::size_t j = 0; j < end; j += kLanes) {
    Lanes x = exponential((load(row + j) - largest) * scale);
    // exponential() gives e^-87 for what is hidden; zero is meant.
    if (j == last) x = causal(x, i, last, 0);
    sums += x;
    store(row + j, x);
  }
  const float inverse = 1.0F / sum_of(sums);
  for (std::size_t j = 0; j < end; j += kLanes) store(row + j, load(row + j) * inverse);
}

// dS = scale * P * (dP - sum of dP * P), in place of dP; zero to the end of the row's last vector, as P is.
ZOO_INLINE void soften_gradient(const float* weights, float* gradient, std::size_t i, float scale) {
  const std::size_t end = padded(i + 1), last = end - kLanes;
  store(gradient + last, causal(load(gradient + last), i, last, 0));
  Lanes products = {};
  for (std::size_t j = 0; j < end; j += kLanes) products += load(weights + j) * load(gradient + j);
  const float sum = sum_of(products);
  for (std::size_t j = 0; j < end; j += kLanes)
    store(gradient + j, load(weights + j) * ((load(gradient + j) - sum) * scale));
}

// Rows [T, D] that products read: D floats behind one another, a row after `row` of them.
struct Rows {
  const float* data;
  std::size_t row;
};

// Whether a head's rows fill tiles, so that products read and write them where they are.
bool is_whole(const Head& head) {
  return head.length % kLanes == 0 && head.head_dim % kLanes == 0;
}

// A head's rows; unless they are whole a copy in `memory`, filled up with zeros.
Rows rows_of(const float* from, std::size_t stride, const Head& head, float* memory) {
  if (is_whole(head)) return {from, stride};
  const std::size_t width = padded(head.head_dim), rows = padded(head.length);
  std::memset(memory, 0, rows * width * sizeof(float));
  for (std::size_t t = 0; t < head.length; ++t)
    std::memcpy(memory + t * width, from + t * stride, head.head_dim * sizeof(float));
  return {memory, width};
}

// Rows turned: [D, padded(T)].
void turn_rows(const float* from, const Head& head, float* to) {
  const std::size_t width = padded(head.length);
  for (std::size_t t = 0; t < head.length; t += kLanes) {
    for (std::size_t d = 0; d < head.head_dim; d += kLanes) {
      const std::size_t columns = std::min(head.head_dim - d, kLanes);
      Lanes block[kLanes] = {};
      for (std::size_t r = 0; r < kLanes && t + r < head.length; ++r)
        block[r] = load_up_to(from + (t + r) * head.stride + d, columns);
      turn(block);
      for (std::size_t i = 0; i < kLanes; ++i) store(to + (d + i) * width + t, block[i]);
    }
  }
}

// c [T, D] = a b to where a head's rows stand, by way of `memory` unless they are whole.
template <class ExtentOf>
ZOO_INLINE void multiply_into(float* to, std::size_t stride, const Head& head, float* memory,
                              const head_product::Factor<float>& a, const Rows& b, const ExtentOf& extent) {
  const std::size_t T = padded(head.length), D = padded(head.head_dim);
  if (is_whole(head)) return multiply(a, b.data, b.row, to, stride, T, extent);
  multiply(a, b.data, b.row, memory, D, T, extent);
  for (std::size_t t = 0; t < head.length; ++t)
    std::memcpy(to + t * stride, memory + t * D, head.head_dim * sizeof(float));
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
  return 4 * padded(length) * padded(head_dim) + padded(length) * padded(length);
}

void forward(const Head& head, float* weights, float* output, std::size_t output_stride, float* scratch) {
  const std::size_t T = padded(head.length), D = padded(head.head_dim);
  float *k_turned = scratch, *more = k_turned + T * D, *product = more + T * D;
  // Rows of weights behind the last position would be the next head's.
  float* scores = is_whole(head) ? weights : product + T * D;
  const Rows q = rows_of(head.q, head.stride, head, more);
  turn_rows(head.k, head, k_turned);
  multiply({q.data, q.row, 1}, k_turned, T, scores, T, T, [&](std::size_t i) {
    return Extent{0, head.head_dim, padded(i + kRows)};
  });
  for (std::size_t i = 0; i < T; ++i) soften(scores + i * T, i, scale_of(head));
  if (scores != weights) std::memcpy(weights, scores, head.length * T * sizeof(float));
  const Rows v = rows_of(head.v, head.stride, head, more);
  multiply_into(output, output_stride, head, product, {scores, T, 1}, v, [&](std::size_t i) {
    return Extent{0, i + kRows, D};
  });
}

void backward(const Head& head, const float* weights, const float* output_gradient, std::size_t output_stride,
              const HeadGradient& gradient, float* scratch) {
  const std::size_t T = padded(head.length), D = padded(head.head_dim);
  float *v_turned = scratch, *more = v_turned + T * D, *other = more + T * D, *product = other + T * D,
        *scores = product + T * D;
  const auto before = [&](std::size_t i) { return Extent{0, i + kRows, D}; };
  const auto after = [&](std::size_t j) { return Extent{j, head.length, D}; };
  const Rows out = rows_of(output_gradient, output_stride, head, more);

  // dV = P^T dO. A row of tiles may reach past T; what it reads of the weights is the next head's or padding.
  multiply_into(gradient.v, head.stride, head, product, {weights, 1, T}, out, after);

  // dP = dO V^T, then dS.
  turn_rows(head.v, head, v_turned);
  multiply({out.data, out.row, 1}, v_turned, T, scores, T, T, [&](std::size_t i) {
    return Extent{0, head.head_dim, padded(i + kRows)};
  });
  for (std::size_t i = 0; i < head.length; ++i)
    soften_gradient(weights + i * T, scores + i * T, i, scale_of(head));

  // dQ = dS K, dK = dS^T Q.
  const Rows k = rows_of(head.k, head.stride, head, other);
  multiply_into(gradient.q, head.stride, head, product, {scores, T, 1}, k, before);
  const Rows q = rows_of(head.q, head.stride, head, other);
  multiply_into(gradient.k, head.stride, head, product, {scores, 1, T}, q, after);
}

}  // namespace zoo::short_attention
