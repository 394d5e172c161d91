#include "models/kernels/attention/head_passes.h"

namespace zoo::kernels::ZOO_KERNELS_FOR {
namespace {

struct Float {
  using Product = DotProduct<FloatDot>;
  static constexpr std::size_t kElements = 1;

  // The rows themselves if they fill tiles; otherwise a zero-padded copy.
  static Right right(const Rows& rows, Word* memory) {
    const std::size_t T = padded(rows.length), D = padded(rows.width);
    if (T == rows.length && D == rows.width) return {reinterpret_cast<const Word*>(rows.data), rows.stride};
    std::memset(memory, 0, T * D * sizeof(Word));
    for (std::size_t t = 0; t < rows.length; ++t)
      std::memcpy(memory + t * D, rows.data + t * rows.stride, rows.width * sizeof(float));
    return {memory, D};
  }

  static Left left(const Rows& rows, Word* memory) {
    const Right same = right(rows, memory);
    return {same.data, same.row, 1};
  }

  static Right right_transposed(const Rows& rows, Word* memory) {
    const std::size_t T = padded(rows.length);
    for (std::size_t t = 0; t < T; t += kLanes) {
      for (std::size_t d = 0; d < rows.width; d += kLanes) {
        Lanes block[kLanes];
        for (std::size_t r = 0; r < kLanes; ++r) block[r] = rows.at(t + r, d);
        transpose(block);
        for (std::size_t i = 0; i < kLanes; ++i) store(memory + (d + i) * T + t, block[i]);
      }
    }
    return {memory, T};
  }

  // [T, T]
  struct Weights {
    Word* words;
    std::size_t length;
    Word* tile;

    ZOO_INLINE TwoRows load(std::size_t i, std::size_t j) const {
      return {kernels::load(words + i * length + j), kernels::load(words + (i + 1) * length + j)};
    }
    ZOO_INLINE void store(std::size_t i, std::size_t j, const Lanes& low, const Lanes& high) const {
      kernels::store(words + i * length + j, low);
      kernels::store(words + (i + 1) * length + j, high);
    }
    Left left(std::size_t i) const { return {words + i * length, length, 1}; }
  };
};

}  // namespace

extern const HeadAttention float_attention;
const HeadAttention float_attention = Passes<Float>::kernel;

}  // namespace zoo::kernels::ZOO_KERNELS_FOR
