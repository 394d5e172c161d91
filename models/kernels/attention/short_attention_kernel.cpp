#include "models/kernels/attention/short_attention_kernel.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "models/kernels/attention/head_product.h"
#include "models/kernels/functions.h"
#include "models/kernels/turn.h"

namespace zoo::short_attention {
namespace {

using namespace kernels;
using namespace head_product;

struct FloatDot {
  using Element = float;
  static ZOO_INLINE Lanes load(const float* from) { return kernels::load(from); }
  static ZOO_INLINE Lanes add(const Lanes& sums, float factor, const Lanes& columns) {
    return sums + factor * columns;
  }
};

// Sets row i of the scores to the softmax of its first i + 1 entries times `scale`, and the rest of its last
// vector to zero.
ZOO_INLINE void soften(float* row, std::size_t i, float scale) {
  const std::size_t end = padded(i + 1), last = end - kLanes;
  store(row + last, causal(load(row + last), i, last, -INFINITY));
  Lanes most = load(row);
  for (std::size_t j = kLanes; j < end; j += kLanes) most = larger(most, load(row + j));
  const float largest = largest_of(most);
  Lanes sums = {};
  for (std::size_t j = 0; j < end; j += kLanes) {
    Lanes x = exponential((load(row + j) - largest) * scale);
    // exponential() gives e^-87 for hidden positions; they must be zero.
    if (j == last) x = causal(x, i, last, 0);
    sums += x;
    store(row + j, x);
  }
  const float inverse = 1.0F / sum_of(sums);
  for (std::size_t j = 0; j < end; j += kLanes) store(row + j, load(row + j) * inverse);
}

// dS = scale * P * (dP - sum of dP * P), in place of dP; zero to the end of the last vector, like P.
ZOO_INLINE void soften_gradient(const float* weights, float* gradient, std::size_t i, float scale) {
  const std::size_t end = padded(i + 1), last = end - kLanes;
  store(gradient + last, causal(load(gradient + last), i, last, 0));
  Lanes products = {};
  for (std::size_t j = 0; j < end; j += kLanes) products += load(weights + j) * load(gradient + j);
  const float sum = sum_of(products);
  for (std::size_t j = 0; j < end; j += kLanes)
    store(gradient + j, load(weights + j) * ((load(gradient + j) - sum) * scale));
}

// Rows [T, D] that products read: D contiguous floats, with stride `row` between rows.
struct Rows {
  const float* data;
  std::size_t row;
};

// True if a head's rows fill tiles, so that products read and write them in place.
bool is_whole(const Head& head) {
  return head.length % kLanes == 0 && head.head_dim % kLanes == 0;
}

// A head's rows; unless they are whole, a zero-padded copy in `memory`.
Rows rows_of(const float* from, std::size_t stride, const Head& head, float* memory) {
  if (is_whole(head)) return {from, stride};
  const std::size_t width = padded(head.head_dim), rows = padded(head.length);
  std::memset(memory, 0, rows * width * sizeof(float));
  for (std::size_t t = 0; t < head.length; ++t)
    std::memcpy(memory + t * width, from + t * stride, head.head_dim * sizeof(float));
  return {memory, width};
}

// Transposes the rows: [D, padded(T)].
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
  // Three factors, a tile's rows of a product, and the scores.
  return (3 * padded(length) + kRows) * padded(head_dim) + padded(length) * padded(length);
}

void forward(const Head& head, float* weights, float* output, std::size_t output_stride, float* scratch) {
  const std::size_t T = padded(head.length), D = padded(head.head_dim);
  float *k_turned = scratch, *q_rows = k_turned + T * D, *v_rows = q_rows + T * D, *product = v_rows + T * D,
        *last_scores = product + kRows * D;
  const Rows q = rows_of(head.q, head.stride, head, q_rows), v = rows_of(head.v, head.stride, head, v_rows);
  turn_rows(head.k, head, k_turned);
  // Computes some rows at a time, from scores to output, while they are in the L1 cache.
  for (std::size_t i = 0; i < head.length; i += kRows) {
    const bool whole = i + kRows <= head.length;
    float* scores = whole ? weights + i * T : last_scores;
    multiply<FloatDot>({q.data + i * q.row, q.row, 1}, k_turned, T, scores, T,
                       {0, head.head_dim, padded(i + kRows)});
    for (std::size_t r = 0; r < kRows; ++r) soften(scores + r * T, i + r, scale_of(head));
    multiply_into<FloatDot>({output, output_stride, head.length, head.head_dim}, i, {scores, T, 1}, v.data,
                            v.row, product, 0, i + kRows);
    if (!whole) std::memcpy(weights + i * T, scores, (head.length - i) * T * sizeof(float));
  }
}

void backward(const Head& head, const float* weights, const float* output_gradient, std::size_t output_stride,
              const HeadGradient& gradient, float* scratch) {
  const std::size_t T = padded(head.length), D = padded(head.head_dim);
  float *v_turned = scratch, *out_rows = v_turned + T * D, *other_rows = out_rows + T * D,
        *product = other_rows + T * D, *scores = product + kRows * D;
  const Rows out = rows_of(output_gradient, output_stride, head, out_rows);
  const auto place = [&](float* data) { return Place{data, head.stride, head.length, head.head_dim}; };

  // dV = P^T dO. Tile rows may reach past T; the weights they read there are the next head's or padding.
  for (std::size_t j = 0; j < head.length; j += kRows)
    multiply_into<FloatDot>(place(gradient.v), j, {weights + j, 1, T}, out.data, out.row, product, j,
                            head.length);

  // dP = dO V^T, then dS, and dQ = dS K.
  turn_rows(head.v, head, v_turned);
  const Rows k = rows_of(head.k, head.stride, head, other_rows);
  for (std::size_t i = 0; i < head.length; i += kRows) {
    float* rows = scores + i * T;
    multiply<FloatDot>({out.data + i * out.row, out.row, 1}, v_turned, T, rows, T,
                       {0, head.head_dim, padded(i + kRows)});
    for (std::size_t r = 0; r < kRows && i + r < head.length; ++r)
      soften_gradient(weights + (i + r) * T, rows + r * T, i + r, scale_of(head));
    multiply_into<FloatDot>(place(gradient.q), i, {rows, T, 1}, k.data, k.row, product, 0, i + kRows);
  }

  // dK = dS^T Q.
  const Rows q = rows_of(head.q, head.stride, head, other_rows);
  for (std::size_t j = 0; j < head.length; j += kRows)
    multiply_into<FloatDot>(place(gradient.k), j, {scores + j, 1, T}, q.data, q.row, product, j, head.length);
}

}  // namespace zoo::short_attention
