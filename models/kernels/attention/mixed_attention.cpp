#include "models/kernels/attention/head_passes.h"
#include "models/kernels/cpu.h"
#if defined(__AVX512BF16__)
#include "models/kernels/amx.h"
#endif

namespace zoo::kernels {
namespace {

template <class UsedProduct> struct Mixed {
  using Product = UsedProduct;
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
      Word* first = tile + i % Product::kRows * length / 2 + j / 2;
      kernels::store(first, to_bfloat16(low));
      kernels::store(first + length / 2, to_bfloat16(high));
      kernels::store(words + i / 2 * length + j, zip(low, high));
    }
    Left left(std::size_t) const { return {tile, length / 2, 1}; }
  };
};

constexpr HeadAttention pair_attention = Passes<Mixed<DotProduct<PairDot>>>::kernel;

#if defined(__AVX512BF16__)
struct AmxProduct {
  static constexpr std::size_t kRows = kTileSide;

  ZOO_AMX static void multiply(const Left& a, const Right& b, std::size_t begin, std::size_t end, float* c,
                               std::size_t c_row, std::size_t columns) {
    constexpr std::size_t kMost = kLongest / 2;
    alignas(64) Word turned[kTileSide * kMost];
    const std::size_t words = end - begin;
    TileProduct product{a.data + begin * a.word, a.row * sizeof(Word), b.data + begin * b.row,
                        b.row * sizeof(Word), words};
    if (a.word > 1) {
      turn(a.data + begin * a.word, a.word, words, turned, kMost);
      product.rows = turned;
      product.row = kMost * sizeof(Word);
    }
    settle();
    ShapedTiles tiles(words);
    tiles.set_height(kTileSide);
    std::size_t v = 0;
    for (; v + 4 <= columns / kLanes; v += 4) set<4>(product, v, c, c_row);
    if (columns / kLanes - v >= 2) {
      set<2>(product, v, c, c_row);
      v += 2;
    }
    if (v < columns / kLanes) set<1>(product, v, c, c_row);
  }

 private:
  template <std::size_t V>
  ZOO_AMX ZOO_INLINE static void set(TileProduct product, std::size_t v, float* c, std::size_t c_row) {
    product.columns = static_cast<const Word*>(product.columns) + v * kLanes;
    clear_tiles<V>();
    add_tiles<Bfloat16Tiles, V>(product);
    store_tiles<V>(c + v * kLanes, c_row * sizeof(float));
  }
};

constexpr HeadAttention amx_attention = Passes<Mixed<AmxProduct>>::kernel;
#else
constexpr HeadAttention amx_attention = pair_attention;
#endif

}  // namespace

const HeadAttention& mixed_attention() {
  return instruction_set() == InstructionSet::kAmxBf16 ? amx_attention : pair_attention;
}

}  // namespace zoo::kernels
