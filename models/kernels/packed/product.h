// Products with packed weights (inference_kernels.h: PackedProduct). Idea: the weight streams from memory
// once, panel by panel; all rows pass over the part of a panel that is in the cache. A tile's sums are in
// registers (tile.h), and only the dot (dot.h) depends on the weight's type. So one loop serves decoding,
// where memory is the limit, and prompts, where arithmetic is.

constexpr std::size_t kPanelVectors = kPanelOutputs / kLanes;

// With few rows, memory is the limit: prefetches across page boundaries.
template <std::size_t R> constexpr std::size_t kPrefetch = R <= 2 ? 4096 : 0;

// Applies f to a tile of sums; out of line: one call for each tile with an activation.
template <std::size_t R, std::size_t V>
__attribute__((noinline)) void apply_to_tile(Pointwise f, Lanes (&sums)[R][V]) {
  with_function(f, [&](auto function) {
    for (std::size_t r = 0; r < R; ++r)
      for (std::size_t v = 0; v < V; ++v) sums[r][v] = function.value(sums[r][v]);
  });
}

template <std::size_t R, std::size_t V>
ZOO_INLINE void write_tile(const PackedProduct& p, std::size_t row, std::size_t column, Lanes (&sums)[R][V]) {
  if (p.pointwise != Pointwise::kNone) apply_to_tile(p.pointwise, sums);
  write_rows(ColumnMask<V>(p.weight->outputs - column), p.result + row * p.result_row + column, p.result_row,
             sums);
}

// Start value of float sums: the bias, plus the result if it is added to.
template <std::size_t R, std::size_t V>
ZOO_INLINE void first_sums(const PackedProduct& p, std::size_t row, std::size_t column, Lanes (&sums)[R][V]) {
  const ColumnMask<V> mask(p.weight->outputs - column);
  begin_sums(mask, p.bias != nullptr ? p.bias + column : nullptr, sums);
  if (p.adds) add_rows(mask, p.result + row * p.result_row + column, p.result_row, sums);
}

// A product may split its depth into parts that add to the result: a part's initial sums, and storing them.
template <std::size_t R, std::size_t V>
ZOO_INLINE void begin_part(const PackedProduct& p, bool is_first, std::size_t row, std::size_t column,
                           Lanes (&sums)[R][V]) {
  if (is_first) return first_sums(p, row, column, sums);
  read_rows(ColumnMask<V>(p.weight->outputs - column), p.result + row * p.result_row + column, p.result_row,
            sums);
}

template <std::size_t R, std::size_t V>
ZOO_INLINE void end_part(const PackedProduct& p, bool is_last, std::size_t row, std::size_t column,
                         Lanes (&sums)[R][V]) {
  if (is_last) return write_tile(p, row, column, sums);
  write_rows(ColumnMask<V>(p.weight->outputs - column), p.result + row * p.result_row + column, p.result_row,
             sums);
}

// Dot of a bfloat16 weight, and bytes of a number of its rows.
using Bfloat16Dot = std::conditional_t<kMultipliesPairs, PairDot, FloatPairDot>;
#if defined(__AMX_TILE__)
constexpr std::size_t kBfloat16Bytes = 2;
#else
constexpr std::size_t kBfloat16Bytes = kMultipliesPairs ? 2 : 4;
#endif

// Bytes in a row for a word of a column.
template <class Dot> constexpr std::size_t kRowWord = std::is_same_v<Dot, FloatPairDot> ? 8 : 4;

// Factors of a tile: rows from `row` and their word `first_word` on, and panel vectors from `columns` on.
template <class Dot>
ZOO_INLINE TileFactors factors_of(const PackedProduct& p, std::size_t row, std::size_t first_word,
                                  const std::byte* columns, std::size_t words) {
  return {.rows = p.rows.data + row * p.rows.row_bytes + first_word * kRowWord<Dot>,
          .row = p.rows.row_bytes,
          .word = kRowWord<Dot>,
          .columns = columns,
          .depth = kPanelVectors * sizeof(Words),
          .words = words};
}

// Calls f(R, row, V, v), R and V as constants, for tiles of the rows and of the panel's vectors [first,
// last): a tile's rows stay in the L1 cache while the panel's vectors pass, and the panel in the L2 cache
// while the rows do. Few rows use wider tiles if tall ones are narrow.
template <std::size_t Tallest, class F>
ZOO_INLINE void for_tiles(std::size_t rows, std::size_t first, std::size_t last, const F& f) {
  if constexpr (Tallest > 1 && kWidestTile<Tallest> < 4)
    if (rows < Tallest) return for_tiles<(Tallest > 2 ? 2 : 1)>(rows, first, last, f);
  for_rows<Tallest>(0, rows, [&](auto tall, std::size_t row) {
    for_vectors<kWidestTile<tall()>>(first, last,
                                     [&](auto vectors, std::size_t v) { f(tall, row, vectors, v); });
  });
}

// Computes vectors [first, last) of a panel whose first column is `panel_column`, for all rows.
template <class Dot>
void multiply_floats(const PackedProduct& p, const std::byte* panel, std::size_t panel_column,
                     std::size_t first, std::size_t last) {
  // This much of a panel stays in the L2 cache while the rows pass.
  constexpr std::size_t kWords = 4096 / kRowWord<Dot>;
  const std::size_t in_word = p.weight->type == WeightType::kFloat32 ? 1 : 2;
  const std::size_t words = (p.weight->inputs + in_word - 1) / in_word;
  for (std::size_t word = 0; word < words; word += kWords) {
    const std::size_t here = smaller(words - word, kWords);
    const std::byte* weights = panel + word * kPanelVectors * sizeof(Words);
    const auto tile = [&](auto tall, std::size_t row, auto vectors, std::size_t v) {
      constexpr std::size_t R = decltype(tall)::value, V = decltype(vectors)::value;
      const std::size_t column = panel_column + v * kLanes;
      Lanes sums[R][V];
      begin_part(p, word == 0, row, column, sums);
      add_products<Dot, kPrefetch<R>>(factors_of<Dot>(p, row, word, weights + v * sizeof(Words), here), sums);
      end_part(p, word + here == words, row, column, sums);
    };
    for_tiles<Dot::kTallest>(p.row_count, first, last, tile);
  }
}

void multiply_int8(const PackedProduct& p, const std::byte* panel, std::size_t panel_column,
                   std::size_t first, std::size_t last) {
  constexpr std::size_t kWords = kByteGroup / 4, kDepth = kPanelVectors * sizeof(Words);
  const std::size_t words = (p.weight->inputs + 3) / 4, groups = (words + kWords - 1) / kWords;
  for_tiles<ByteDot::kTallest>(
      p.row_count, first, last, [&](auto tall, std::size_t row, auto vectors, std::size_t v) {
        constexpr std::size_t R = decltype(tall)::value, V = decltype(vectors)::value;
        const std::size_t column = panel_column + v * kLanes;
        const std::byte* columns = panel + v * sizeof(Words);
        Lanes totals[R][V] = {};
        for (std::size_t i = 0; i < groups; ++i, columns += kWords * kDepth) {
          const std::size_t word = i * kWords, here = smaller(words - word, kWords);
          IntegerLanes sums[R][V];
          for (std::size_t r = 0; r < R; ++r)
            for (std::size_t j = 0; j < V; ++j)
              sums[r][j] = IntegerLanes{} + (ByteDot::kTaken - 128) * p.rows.sums[(row + r) * groups + i];
          add_products<ByteDot, kPrefetch<R>>(factors_of<ByteDot>(p, row, word, columns, here), sums);
          for (std::size_t r = 0; r < R; ++r)
            for (std::size_t j = 0; j < V; ++j)
              totals[r][j] += converted<Lanes>(sums[r][j]) * p.rows.scales[(row + r) * groups + i];
        }
        Lanes results[R][V];
        first_sums(p, row, column, results);
        for (std::size_t r = 0; r < R; ++r)
          for (std::size_t j = 0; j < V; ++j)
            results[r][j] += totals[r][j] * load(p.weight->scales + column + j * kLanes);
        write_tile(p, row, column, results);
      });
}
