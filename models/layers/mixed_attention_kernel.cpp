#include "models/layers/mixed_attention_kernel.h"

#include <cmath>

#include "models/kernels/functions.h"
#include "models/kernels/pair_vector.h"
#include "models/kernels/turn.h"
#include "models/layers/head_product.h"

namespace zoo::mixed_attention {
namespace {

using namespace kernels;
using head_product::causal;
using head_product::Extent;
using head_product::kRows;
using short_attention::padded;

struct PairDot {
  using Element = Pair;
  static ZOO_INLINE Words load(const Pair* from) { return load_words(from); }
  static ZOO_INLINE Lanes add(const Lanes& sums, Pair factor, const Words& columns) {
    return add_products(sums, factor, columns);
  }
};

// c = a b; a's columns, b's rows and what `extent` counts are pairs.
template <class ExtentOf>
ZOO_INLINE void multiply(const head_product::Factor<Pair>& a, const Pair* b, std::size_t b_row, float* c,
                         std::size_t c_row, std::size_t rows, const ExtentOf& extent) {
  head_product::multiply<PairDot>(a, b, b_row, c, c_row, rows, extent);
}

// Rows [T, D] of a head, in the forms that products take them in. Beyond the data they are zero.
struct Rows {
  const float* data;
  std::size_t stride, length, width;
  float scale = 1;

  ZOO_INLINE Lanes at(std::size_t t, std::size_t d) const {
    if (t >= length || d >= width) return Lanes{};
    const float* from = data + t * stride + d;
    return (width - d >= kLanes ? load(from) : load_some(from, width - d)) * scale;
  }
};

// Two columns are a pair: [T, D / 2].
void pack_columns(const Rows& rows, Pair* to) {
  const std::size_t T = padded(rows.length), D = padded(rows.width);
  for (std::size_t t = 0; t < T; ++t) {
    for (std::size_t d = 0; d < D; d += kLanes) {
      const HalfWords halves = squeeze(rows.at(t, d));
      std::memcpy(to + t * (D / 2) + d / 2, &halves, sizeof halves);
    }
  }
}

// Two rows are a pair: [T / 2, D].
void pack_rows(const Rows& rows, Pair* to) {
  const std::size_t T = padded(rows.length), D = padded(rows.width);
  for (std::size_t t = 0; t < T; t += 2) {
    for (std::size_t d = 0; d < D; d += kLanes) {
      const Words words = zip(rows.at(t, d), rows.at(t + 1, d));
      std::memcpy(to + t / 2 * D + d, &words, sizeof words);
    }
  }
}

// Two columns are a pair, and pairs are rows: [D / 2, T].
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

// Rows [T, D] of floats to where a head's stand.
void unpack(const float* from, const Rows& rows, float* to) {
  const std::size_t D = padded(rows.width);
  for (std::size_t t = 0; t < rows.length; ++t) {
    for (std::size_t d = 0; d < rows.width; d += kLanes) {
      const Lanes x = load(from + t * D + d) * rows.scale;
      float* at = to + t * rows.stride + d;
      if (rows.width - d >= kLanes) {
        store(at, x);
      } else {
        store_some(at, x, rows.width - d);
      }
    }
  }
}

// Row i of the scores becomes exp(score - largest), zero behind the row's position to the end of the vector.
// Returns what the row must be multiplied with to be softmax.
ZOO_INLINE float soften(float* row, std::size_t i) {
  const std::size_t end = padded(i + 1), last = end - kLanes;
  store(row + last, causal(load(row + last), i, last, -INFINITY));
  Lanes most = load(row);
  for (std::size_t j = kLanes; j < end; j += kLanes) most = larger(most, load(row + j));
  const float largest = largest_of(most);
  Lanes sums = {};
  for (std::size_t j = 0; j < end; j += kLanes) {
    Lanes x = exponential(load(row + j) - largest);
    // exponential() gives e^-87 for what is hidden; zero is meant.
    if (j == last) x = causal(x, i, last, 0);
    sums += x;
    store(row + j, x);
  }
  return 1.0F / sum_of(sums);
}

// Rows i and i + 1, [j, j + 16), in both forms of a factor.
struct Both {
  Pair* columns;  // [T, T / 2]
  Pair* rows;     // [T / 2, T]
  std::size_t length;

  ZOO_INLINE void store(std::size_t i, std::size_t j, const Lanes& low, const Lanes& high) const {
    const HalfWords halves[2] = {squeeze(low), squeeze(high)};
    std::memcpy(columns + i * length / 2 + j / 2, &halves[0], sizeof halves[0]);
    std::memcpy(columns + (i + 1) * length / 2 + j / 2, &halves[1], sizeof halves[1]);
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

// dS = P * (dP - sum of dP * P) of rows i and i + 1, of which dP stands in `gradient`.
ZOO_INLINE void soften_gradient(const Pair* weights, const float* gradient, std::size_t i, const Both& to) {
  const std::size_t T = to.length, end = padded(i + 2);
  const Pair* pairs = weights + i / 2 * T;
  const float *first = gradient + i * T, *second = first + T;
  Lanes low_sums = {}, high_sums = {};
  // Behind a row's position its weights are zero; what stands in dP there is of no meaning, but finite.
  for (std::size_t j = 0; j < end; j += kLanes) {
    const Words p = load_words(pairs + j);
    low_sums += low_half(p) * load(first + j);
    high_sums += high_half(p) * load(second + j);
  }
  const float low = sum_of(low_sums), high = sum_of(high_sums);
  for (std::size_t j = 0; j < end; j += kLanes) {
    const Words p = load_words(pairs + j);
    to.store(i, j, low_half(p) * (load(first + j) - low), high_half(p) * (load(second + j) - high));
  }
}

float scale_of(const Head& head) {
  return 1.0F / std::sqrt(static_cast<float>(head.head_dim));
}

// Scratch memory, taken piece by piece.
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
  // Six factors of half a pair an element and a result; the scores, and two forms of their gradient.
  return 6 * padded(T * D / 2) + T * D + 2 * T * T;
}

void forward(const Head& head, Pair* weights, float* output, std::size_t output_stride, Pair* scratch) {
  const std::size_t T = padded(head.length), D = padded(head.head_dim);
  Pieces pieces{scratch};
  Pair *q = pieces.pairs(T * D / 2), *k = pieces.pairs(T * D / 2), *v = pieces.pairs(T * D / 2),
       *chosen = pieces.pairs(T * T / 2);
  float *result = pieces.floats(T * D), *scores = pieces.floats(T * T);
  pack_columns({head.q, head.stride, head.length, head.head_dim, scale_of(head)}, q);
  pack_turned({head.k, head.stride, head.length, head.head_dim}, k);
  pack_rows({head.v, head.stride, head.length, head.head_dim}, v);
  multiply({q, D / 2, 1}, k, T, scores, T, T, [&](std::size_t i) {
    return Extent{0, D / 2, padded(i + kRows)};
  });
  const Both to{chosen, weights, T};
  for (std::size_t i = 0; i < T; i += 2) {
    float *first = scores + i * T, *second = first + T;
    const float low = soften(first, i), high = soften(second, i + 1);
    for (std::size_t j = 0; j < padded(i + 2); j += kLanes)
      to.store(i, j, load(first + j) * low, load(second + j) * high);
  }
  multiply({chosen, T / 2, 1}, v, D, result, D, T, [&](std::size_t i) {
    return Extent{0, (i + kRows) / 2, D};
  });
  unpack(result, {nullptr, output_stride, head.length, head.head_dim}, output);
}

void backward(const Head& head, const Pair* weights, const float* output_gradient, std::size_t output_stride,
              const HeadGradient& gradient, Pair* scratch) {
  const std::size_t T = padded(head.length), D = padded(head.head_dim);
  Pieces pieces{scratch};
  Pair *columns = pieces.pairs(T * D / 2), *rows = pieces.pairs(T * D / 2), *v = pieces.pairs(T * D / 2);
  const Both scores_gradient{pieces.pairs(T * T / 2), pieces.pairs(T * T / 2), T};
  float *product = pieces.floats(T * D), *scores = pieces.floats(T * T);
  const Rows out{output_gradient, output_stride, head.length, head.head_dim},
      plain{nullptr, head.stride, head.length, head.head_dim},
      scaled{nullptr, head.stride, head.length, head.head_dim, scale_of(head)};
  const auto before = [&](std::size_t i) { return Extent{0, (i + kRows) / 2, D}; };
  const auto after = [&](std::size_t j) { return Extent{j / 2, T / 2, D}; };

  // dV = P^T dO. Rows behind the data are zero in dO.
  pack_rows(out, rows);
  multiply({weights, 1, T}, rows, D, product, D, T, after);
  unpack(product, plain, gradient.v);

  // dP = dO V^T, then dS.
  pack_columns(out, columns);
  pack_turned({head.v, head.stride, head.length, head.head_dim}, v);
  multiply({columns, D / 2, 1}, v, T, scores, T, T, [&](std::size_t i) {
    return Extent{0, D / 2, padded(i + kRows)};
  });
  for (std::size_t i = 0; i < T; i += 2) soften_gradient(weights, scores, i, scores_gradient);

  // dQ = dS K / sqrt(D), dK = dS^T Q / sqrt(D).
  pack_rows({head.k, head.stride, head.length, head.head_dim}, rows);
  multiply({scores_gradient.columns, T / 2, 1}, rows, D, product, D, T, before);
  unpack(product, scaled, gradient.q);
  pack_rows({head.q, head.stride, head.length, head.head_dim, scale_of(head)}, rows);
  multiply({scores_gradient.rows, 1, T}, rows, D, product, D, T, after);
  unpack(product, plain, gradient.k);
}

}  // namespace zoo::mixed_attention
