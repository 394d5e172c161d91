#include "models/kernels/attention/mixed_attention_kernel.h"

#include <cmath>

#include "models/kernels/attention/head_product.h"
#include "models/kernels/functions.h"
#include "models/kernels/pair_vector.h"
#include "models/kernels/turn.h"

namespace zoo::mixed_attention {
namespace {

using namespace kernels;
using head_product::causal;
using head_product::kRows;
using head_product::multiply;
using head_product::multiply_into;
using head_product::Place;
using short_attention::padded;

struct PairDot {
  using Element = Pair;
  static ZOO_INLINE Words load(const Pair* from) { return load_words(from); }
  static ZOO_INLINE Lanes add(const Lanes& sums, Pair factor, const Words& columns) {
    return add_products(sums, factor, columns);
  }
};

// Rows [T, D] of a head, packed as factors of products. Zero past the data.
struct Rows {
  const float* data;
  std::size_t stride, length, width;

  ZOO_INLINE Lanes at(std::size_t t, std::size_t d) const {
    if (t >= length || d >= width) return Lanes{};
    const float* from = data + t * stride + d;
    return load_up_to(from, width - d);
  }
};

// Packs two columns as a pair: [T, D / 2].
void pack_columns(const Rows& rows, Pair* to) {
  const std::size_t T = padded(rows.length), D = padded(rows.width);
  for (std::size_t t = 0; t < T; ++t) {
    for (std::size_t d = 0; d < D; d += kLanes) {
      const HalfWords halves = squeeze(rows.at(t, d));
      std::memcpy(to + t * (D / 2) + d / 2, &halves, sizeof halves);
    }
  }
}

// Packs two rows as a pair: [T / 2, D].
void pack_rows(const Rows& rows, Pair* to) {
  const std::size_t T = padded(rows.length), D = padded(rows.width);
  for (std::size_t t = 0; t < T; t += 2) {
    for (std::size_t d = 0; d < D; d += kLanes) {
      const Words words = zip(rows.at(t, d), rows.at(t + 1, d));
      std::memcpy(to + t / 2 * D + d, &words, sizeof words);
    }
  }
}

// Packs two columns as a pair and transposes: [D / 2, T].
void pack_turned(const Rows& rows, Pair* to) {
  const std::size_t T = padded(rows.length), D = padded(rows.width);
  for (std::size_t t = 0; t < T; t += kLanes) {
    for (std::size_t d = 0; d < D; d += 2 * kLanes) {
      Lanes block[kLanes];
      for (std::size_t r = 0; r < kLanes; ++r) {
        const HalfWords halves[2] = {squeeze(rows.at(t + r, d)), squeeze(rows.at(t + r, d + kLanes))};
        std::memcpy(&block[r], halves, sizeof halves);
      }
      turn(block);
      for (std::size_t p = 0; p < kLanes && d + 2 * p < D; ++p)
        std::memcpy(to + (d / 2 + p) * T + t, &block[p], sizeof block[p]);
    }
  }
}

// Sets row i of the scores to exp((score - largest) * scale), and to zero from the row's position to the end
// of the vector. Returns the factor that makes the row a softmax.
ZOO_INLINE float soften(float* row, std::size_t i, float scale) {
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
  return 1.0F / sum_of(sums);
}

// Rows i and i + 1, [j, j + 16), in both packed forms: for one tile and for all.
struct Both {
  Pair* columns;  // [kRows, T / 2]
  Pair* rows;     // [T / 2, T]
  std::size_t length;

  ZOO_INLINE void store(std::size_t i, std::size_t j, const Lanes& low, const Lanes& high) const {
    const HalfWords halves[2] = {squeeze(low), squeeze(high)};
    Pair* first = columns + i % kRows * length / 2 + j / 2;
    std::memcpy(first, &halves[0], sizeof halves[0]);
    std::memcpy(first + length / 2, &halves[1], sizeof halves[1]);
    const Words words = zip(low, high);
    std::memcpy(rows + i / 2 * length + j, &words, sizeof words);
  }
};

ZOO_INLINE Lanes low_half(const Words& words) {
  return bits<Lanes>(words << 16);
}
ZOO_INLINE Lanes high_half(const Words& words) {
  return bits<Lanes>(words & 0xFFFF0000U);
}

// dS = scale * P * (dP - sum of dP * P) of rows i and i + 1; `gradient` holds dP.
ZOO_INLINE void soften_gradient(const Pair* weights, const float* gradient, std::size_t i, float scale,
                                const Both& to) {
  const std::size_t T = to.length, end = padded(i + 2);
  const Pair* pairs = weights + i / 2 * T;
  const float* second = gradient + T;
  Lanes low_sums = {}, high_sums = {};
  // Weights past a row's position are zero; dP has finite values without meaning there.
  for (std::size_t j = 0; j < end; j += kLanes) {
    const Words p = load_words(pairs + j);
    low_sums += low_half(p) * load(gradient + j);
    high_sums += high_half(p) * load(second + j);
  }
  const float low = sum_of(low_sums), high = sum_of(high_sums);
  for (std::size_t j = 0; j < end; j += kLanes) {
    const Words p = load_words(pairs + j);
    to.store(i, j, low_half(p) * ((load(gradient + j) - low) * scale),
             high_half(p) * ((load(second + j) - high) * scale));
  }
}

float scale_of(const Head& head) {
  return 1.0F / std::sqrt(static_cast<float>(head.head_dim));
}

// Scratch memory, handed out in pieces.
struct Pieces {
  Pair* next;

  Pair* pairs(std::size_t count) {
    Pair* piece = next;
    next += padded(count);
    return piece;
  }
  float* floats(std::size_t count) { return reinterpret_cast<float*>(pairs(count)); }
};

}  // namespace

std::size_t weights_size(std::size_t length) {
  return padded(length) / 2 * padded(length);
}

std::size_t scratch_size(std::size_t length, std::size_t head_dim) {
  const std::size_t T = padded(length), D = padded(head_dim);
  // Three factors of half a pair an element, one form of a matrix of weights, and what a tile takes.
  return 3 * padded(T * D / 2) + T * T / 2 + kRows * (D + T + T / 2);
}

void forward(const Head& head, Pair* weights, float* output, std::size_t output_stride, Pair* scratch) {
  const std::size_t T = padded(head.length), D = padded(head.head_dim);
  Pieces pieces{scratch};
  Pair *q = pieces.pairs(T * D / 2), *k = pieces.pairs(T * D / 2), *v = pieces.pairs(T * D / 2);
  float *scores = pieces.floats(kRows * T), *product = pieces.floats(kRows * D);
  const Both chosen{pieces.pairs(kRows * T / 2), weights, T};
  pack_columns({head.q, head.stride, head.length, head.head_dim}, q);
  pack_turned({head.k, head.stride, head.length, head.head_dim}, k);
  pack_rows({head.v, head.stride, head.length, head.head_dim}, v);
  // Computes some rows at a time, from scores to output, while they are in the L1 cache.
  for (std::size_t i = 0; i < T; i += kRows) {
    const std::size_t seen = padded(i + kRows);
    multiply<PairDot>({q + i * D / 2, D / 2, 1}, k, T, scores, T, {0, D / 2, seen});
    for (std::size_t r = 0; r < kRows; r += 2) {
      float *first = scores + r * T, *second = first + T;
      const float low = soften(first, i + r, scale_of(head)),
                  high = soften(second, i + r + 1, scale_of(head));
      for (std::size_t j = 0; j < seen; j += kLanes)
        chosen.store(i + r, j, load(first + j) * low, load(second + j) * high);
    }
    multiply_into<PairDot>({output, output_stride, head.length, head.head_dim}, i, {chosen.columns, T / 2, 1},
                           v, D, product, 0, (i + kRows) / 2);
  }
}

void backward(const Head& head, const Pair* weights, const float* output_gradient, std::size_t output_stride,
              const HeadGradient& gradient, Pair* scratch) {
  const std::size_t T = padded(head.length), D = padded(head.head_dim);
  Pieces pieces{scratch};
  Pair *columns = pieces.pairs(T * D / 2), *rows = pieces.pairs(T * D / 2), *v = pieces.pairs(T * D / 2),
       *all = pieces.pairs(T * T / 2);
  float *scores = pieces.floats(kRows * T), *product = pieces.floats(kRows * D);
  const Both scores_gradient{pieces.pairs(kRows * T / 2), all, T};
  const auto place = [&](float* data) { return Place{data, head.stride, head.length, head.head_dim}; };
  const auto rows_of = [&](const float* data) { return Rows{data, head.stride, head.length, head.head_dim}; };
  const Rows out{output_gradient, output_stride, head.length, head.head_dim};

  // dV = P^T dO. Rows past the data are zero in dO.
  pack_rows(out, rows);
  for (std::size_t j = 0; j < T; j += kRows)
    multiply_into<PairDot>(place(gradient.v), j, {weights + j, 1, T}, rows, D, product, j / 2, T / 2);

  // dP = dO V^T, then dS, and dQ = dS K.
  pack_columns(out, columns);
  pack_turned(rows_of(head.v), v);
  pack_rows(rows_of(head.k), rows);
  for (std::size_t i = 0; i < T; i += kRows) {
    multiply<PairDot>({columns + i * D / 2, D / 2, 1}, v, T, scores, T, {0, D / 2, padded(i + kRows)});
    for (std::size_t r = 0; r < kRows; r += 2)
      soften_gradient(weights, scores + r * T, i + r, scale_of(head), scores_gradient);
    multiply_into<PairDot>(place(gradient.q), i, {scores_gradient.columns, T / 2, 1}, rows, D, product, 0,
                           (i + kRows) / 2);
  }

  // dK = dS^T Q.
  pack_rows(rows_of(head.q), rows);
  for (std::size_t j = 0; j < T; j += kRows)
    multiply_into<PairDot>(place(gradient.k), j, {all + j, 1, T}, rows, D, product, j / 2, T / 2);
}

}  // namespace zoo::mixed_attention
