// Tiles of a product: R rows of activations times V vectors of outputs, in registers while they are summed.

#ifdef __AVX512F__
constexpr std::size_t kTallTile = 6, kWideTile = 4;
#else
constexpr std::size_t kTallTile = 4, kWideTile = 1;
#endif

struct TileInput {
  const std::byte* rows;
  std::size_t row_bytes;
  const std::byte* weights;
  std::size_t word_bytes;  // between consecutive words of an output
  std::size_t words;
};

template <class Dot, std::size_t R, std::size_t V>
ZOO_INLINE void add_products(const TileInput& in, typename Dot::Sums (&sums)[R][V]) {
  const std::byte* weights = in.weights;
  for (std::size_t w = 0; w < in.words; ++w, weights += in.word_bytes) {
    Words read[V];
    for (std::size_t v = 0; v < V; ++v) {
      read[v] = load_words(weights + v * sizeof(Words));
      // With few rows, memory is the limit: prefetches across the border of the page.
      if constexpr (R <= 2) __builtin_prefetch(weights + v * sizeof(Words) + 4096);
    }
    for (std::size_t r = 0; r < R; ++r) {
      for (std::size_t v = 0; v < V; ++v)
        sums[r][v] = Dot::add(sums[r][v], in.rows + r * in.row_bytes + w * 4, read[v]);
    }
  }
}

/// Calls f(R as a constant, first row) for tiles of kTallTile rows and the remaining rows.
template <class F>
ZOO_INLINE void for_rows(std::size_t count, const F& f) {
  std::size_t row = 0;
  for (; row + kTallTile <= count; row += kTallTile) f(std::integral_constant<std::size_t, kTallTile>{}, row);
  if constexpr (kTallTile > 4) {
    if (row + 4 <= count) {
      f(std::integral_constant<std::size_t, 4>{}, row);
      row += 4;
    }
  }
  if (row + 2 <= count) {
    f(std::integral_constant<std::size_t, 2>{}, row);
    row += 2;
  }
  if (row < count) f(std::integral_constant<std::size_t, 1>{}, row);
}

/// Calls f(V as a constant, first vector) for parts of `count` vectors, each up to a tile's width.
template <class F>
ZOO_INLINE void for_vectors(std::size_t first, std::size_t last, const F& f) {
  std::size_t v = first;
  if constexpr (kWideTile > 1) {
    for (; v + kWideTile <= last; v += kWideTile) f(std::integral_constant<std::size_t, kWideTile>{}, v);
    for (; v + 2 <= last; v += 2) f(std::integral_constant<std::size_t, 2>{}, v);
  }
  for (; v < last; ++v) f(std::integral_constant<std::size_t, 1>{}, v);
}
