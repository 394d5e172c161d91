#pragma once

#include <cmath>

#include "models/kernels/attention/head_attention.h"
#include "models/kernels/elementary.h"
#include "models/kernels/tile.h"

// Forward and backward pass of head_attention.h for both precisions. Everything is inlined (vector.h). A
// Precision has kElements, the numbers in a word; the layouts of a factor: left() [T, D / kElements],
// right() [T / kElements, D] and right_transposed() [D / kElements, T]; Weights; and Product, which
// multiplies kRows rows at a time.
namespace zoo::kernels {

/// Word k of row i is at data[i * row + k * word].
struct Left {
  const Word* data;
  std::size_t row, word;
};

/// Row k is at data + k * row.
struct Right {
  const Word* data;
  std::size_t row;
};

/// Rows [T, D] of a head; zero past the data.
struct Rows {
  const float* data;
  std::size_t stride, length, width;

  ZOO_INLINE Lanes at(std::size_t t, std::size_t d) const {
    if (t >= length || d >= width) return Lanes{};
    return load_up_to(data + t * stride + d, width - d);
  }
};

/// Scratch memory, handed out in pieces.
struct Pieces {
  Word* next;

  ZOO_INLINE Word* words(std::size_t count) {
    Word* piece = next;
    next += padded(count);
    return piece;
  }
  ZOO_INLINE float* floats(std::size_t count) { return reinterpret_cast<float*>(words(count)); }
};

/// c = a b for kRows rows, summed over the words [begin, end).
template <class Dot> struct DotProduct {
  static constexpr std::size_t kRows = 4;  // four vectors of columns fill half of the registers

  static ZOO_INLINE void multiply(const Left& a, const Right& b, std::size_t begin, std::size_t end, float* c,
                                  std::size_t c_row, std::size_t columns) {
    for_vectors<kWidestTile<kRows>>(0, vectors_of(columns), [&](auto width, std::size_t v) {
      Lanes sums[kRows][width()] = {};
      add_products<Dot>({.rows = a.data + begin * a.word,
                         .row = a.row * sizeof(Word),
                         .word = a.word * sizeof(Word),
                         .columns = b.data + begin * b.row + v * kLanes,
                         .depth = b.row * sizeof(Word),
                         .words = end - begin},
                        sums);
      write_rows(ColumnMask<width()>(width() * kLanes), c + v * kLanes, c_row, sums);
    });
  }
};

/// Rows [length, width] of results, and memory for a tile that the rows do not fill.
struct Results {
  float* data;
  std::size_t stride, length, width;
  float* memory;  // [kRows, padded(width)]

  /// Sets the existing rows among i … i + kRows - 1 to a b.
  template <class Product>
  ZOO_INLINE void set(std::size_t i, const Left& a, const Right& b, std::size_t begin,
                      std::size_t end) const {
    const std::size_t columns = padded(width);
    float* rows = data + i * stride;
    if (i + Product::kRows <= length && columns == width)
      return Product::multiply(a, b, begin, end, rows, stride, columns);
    Product::multiply(a, b, begin, end, memory, columns, columns);
    for (std::size_t r = 0; r < Product::kRows && i + r < length; ++r)
      std::memcpy(rows + r * stride, memory + r * columns, width * sizeof(float));
  }
};

/// Sets row i of the scores to softmax weights (softmax.h): zero from the row's position to the end of the
/// vector. Returns the factor that makes them sum to 1.
ZOO_INLINE float causal_softmax(float* row, std::size_t i, float scale) {
  const std::size_t end = padded(i + 1), last = end - kLanes;
  const IntegerLanes position = numbers_from(static_cast<int>(last));
  store(row + last, select(position > static_cast<int>(i), all(-INFINITY), load(row + last)));
  Lanes most = load(row);
  for (std::size_t j = kLanes; j < end; j += kLanes) most = larger(most, load(row + j));
  return 1.0F / exponentials(row, end, largest_of(most), scale);
}

/// dS = scale * P * (dP - sum of dP * P) of rows i and i + 1; `gradient` holds dP.
template <class Weights>
ZOO_INLINE void softmax_gradient(const Weights& weights, const float* gradient, std::size_t i, float scale,
                                 const Weights& to) {
  const std::size_t end = padded(i + 2);
  const float* second = gradient + to.length;
  Lanes low_sums = {}, high_sums = {};
  // Past a row's position, weights are zero and dP is finite but meaningless.
  for (std::size_t j = 0; j < end; j += kLanes) {
    const auto [low, high] = weights.load(i, j);
    low_sums += low * load(gradient + j);
    high_sums += high * load(second + j);
  }
  const float low_sum = sum_of(low_sums), high_sum = sum_of(high_sums);
  for (std::size_t j = 0; j < end; j += kLanes) {
    const auto [low, high] = weights.load(i, j);
    to.store(i, j, low * ((load(gradient + j) - low_sum) * scale),
             high * ((load(second + j) - high_sum) * scale));
  }
}

/// Two rows of a vector of weights.
struct TwoRows {
  Lanes low, high;
};

template <class Precision> struct Passes {
  using Product = typename Precision::Product;
  static constexpr std::size_t E = Precision::kElements, kRows = Product::kRows;
  using Weights = typename Precision::Weights;

  static std::size_t weights_size(std::size_t length) { return padded(length) * padded(length) / E; }

  static std::size_t scratch_size(std::size_t length, std::size_t head_dim) {
    const std::size_t T = padded(length), D = padded(head_dim);
    // Three factors, one layout of the weights, and a tile's rows of scores, weights and results.
    return 3 * padded(T * D / E) + T * T / E + kRows * (T + T / E + D);
  }

  static float scale_of(const Head& head) { return 1.0F / std::sqrt(static_cast<float>(head.head_dim)); }

  static void forward(const Head& head, Word* weights, float* output, std::size_t output_stride,
                      Word* scratch) {
    const std::size_t T = padded(head.length), D = padded(head.head_dim);
    Pieces pieces{scratch};
    const auto rows = [&](const float* data) { return Rows{data, head.stride, head.length, head.head_dim}; };
    const Left q = Precision::left(rows(head.q), pieces.words(T * D / E));
    const Right k = Precision::right_transposed(rows(head.k), pieces.words(T * D / E)),
                v = Precision::right(rows(head.v), pieces.words(T * D / E));
    float* scores = pieces.floats(kRows * T);
    const Weights chosen{weights, T, pieces.words(kRows * T / E)};
    const Results results{output, output_stride, head.length, head.head_dim, pieces.floats(kRows * D)};
    // Computes some rows at a time, from scores to output, while they are in the L1 cache.
    for (std::size_t i = 0; i < head.length; i += kRows) {
      const std::size_t seen = padded(i + kRows);
      Product::multiply({q.data + i * q.row, q.row, q.word}, k, 0, D / E, scores, T, seen);
      for (std::size_t r = 0; r < kRows; r += 2) {
        float *first = scores + r * T, *second = first + T;
        const float low = causal_softmax(first, i + r, scale_of(head)),
                    high = causal_softmax(second, i + r + 1, scale_of(head));
        for (std::size_t j = 0; j < seen; j += kLanes)
          chosen.store(i + r, j, load(first + j) * low, load(second + j) * high);
      }
      results.template set<Product>(i, chosen.left(i), v, 0, (i + kRows) / E);
    }
  }

  static void backward(const Head& head, const Word* weights, const float* output_gradient,
                       std::size_t output_stride, const HeadGradient& gradient, Word* scratch) {
    const std::size_t T = padded(head.length), D = padded(head.head_dim);
    const std::size_t end = (head.length + kRows - 1) / kRows * kRows / E;
    Pieces pieces{scratch};
    Word *left = pieces.words(T * D / E), *right = pieces.words(T * D / E),
         *transposed = pieces.words(T * D / E);
    float *scores = pieces.floats(kRows * T), *memory = pieces.floats(kRows * D);
    const Weights chosen{const_cast<Word*>(weights), T, nullptr},
        dS{pieces.words(T * T / E), T, pieces.words(kRows * T / E)};
    const auto rows = [&](const float* data) { return Rows{data, head.stride, head.length, head.head_dim}; };
    const auto results = [&](float* data) {
      return Results{data, head.stride, head.length, head.head_dim, memory};
    };
    const Rows out{output_gradient, output_stride, head.length, head.head_dim};

    // dV = P^T dO. Rows past the data are zero in dO.
    const Right dO = Precision::right(out, right);
    for (std::size_t j = 0; j < head.length; j += kRows)
      results(gradient.v).template set<Product>(j, {weights + j, 1, T}, dO, j / E, end);

    // dP = dO V^T, then dS, and dQ = dS K.
    const Left dO_rows = Precision::left(out, left);
    const Right v = Precision::right_transposed(rows(head.v), transposed),
                k = Precision::right(rows(head.k), right);
    for (std::size_t i = 0; i < head.length; i += kRows) {
      Product::multiply({dO_rows.data + i * dO_rows.row, dO_rows.row, dO_rows.word}, v, 0, D / E, scores, T,
                        padded(i + kRows));
      for (std::size_t r = 0; r < kRows; r += 2)
        softmax_gradient(chosen, scores + r * T, i + r, scale_of(head), dS);
      results(gradient.q).template set<Product>(i, dS.left(i), k, 0, (i + kRows) / E);
    }

    // dK = dS^T Q.
    const Right q = Precision::right(rows(head.q), right);
    for (std::size_t j = 0; j < head.length; j += kRows)
      results(gradient.k).template set<Product>(j, {dS.words + j, 1, T}, q, j / E, end);
  }

  static constexpr HeadAttention kernel{weights_size, scratch_size, forward, backward};
};

}  // namespace zoo::kernels
