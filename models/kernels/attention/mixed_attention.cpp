#include "models/kernels/attention/head_passes.h"

namespace zoo::kernels {
namespace {

struct Mixed {
  using Dot = PairDot;
  static constexpr std::size_t kElements = 2;

  // Two columns are a pair.
  static Left left(const Rows& rows, Word* memory) {
    const std::size_t T = padded(rows.length), D = padded(rows.width);
    for (std::size_t t = 0; t < T; ++t)
      for (std::size_t d = 0; d < D; d += kLanes)
        store(memory + t * (D / 2) + d / 2, to_bfloat16(rows.at(t, d)));
    return {memory, D / 2, 1};
  }

  // Two rows are a pair.
  static Right right(const Rows& rows, Word* memory) {
    const std::size_t T = padded(rows.length), D = padded(rows.width);
    for (std::size_t t = 0; t < T; t += 2)
      for (std::size_t d = 0; d < D; d += kLanes)
        store(memory + t / 2 * D + d, zip(rows.at(t, d), rows.at(t + 1, d)));
    return {memory, D};
  }

  static Right right_transposed(const Rows& rows, Word* memory) {
    const std::size_t T = padded(rows.length), D = padded(rows.width);
    for (std::size_t t = 0; t < T; t += kLanes) {
      for (std::size_t d = 0; d < D; d += 2 * kLanes) {
        Lanes block[kLanes];
        for (std::size_t r = 0; r < kLanes; ++r) {
          const Halves halves[2] = {to_bfloat16(rows.at(t + r, d)), to_bfloat16(rows.at(t + r, d + kLanes))};
          block[r] = load(halves);
        }
        transpose(block);
        for (std::size_t p = 0; p < kLanes && d + 2 * p < D; ++p)
          store(memory + (d / 2 + p) * T + t, block[p]);
      }
    }
    return {memory, T};
  }

  // Two rows are a pair, [T / 2, T]; of a tile also two columns, [kRows, T / 2].
  struct Weights {
    Word* words;
    std::size_t length;
    Word* tile;

    ZOO_INLINE TwoRows load(std::size_t i, std::size_t j) const {
      const auto pairs = kernels::load<Words>(words + i / 2 * length + j);
      return {low_half(pairs), high_half(pairs)};
    }
    ZOO_INLINE void store(std::size_t i, std::size_t j, const Lanes& low, const Lanes& high) const {
      Word* first = tile + i % kRows * length / 2 + j / 2;
      kernels::store(first, to_bfloat16(low));
      kernels::store(first + length / 2, to_bfloat16(high));
      kernels::store(words + i / 2 * length + j, zip(low, high));
    }
    Left left(std::size_t) const { return {tile, length / 2, 1}; }
  };
};

}  // namespace

const HeadAttention mixed_attention = Passes<Mixed>::kernel;

}  // namespace zoo::kernels
