// Products with packed weights by AMX (amx.h), whose tiles have the order of a panel. Idea: 16 rows pass over
// four vectors of a panel.

#if defined(__AMX_TILE__)
// Products of at most 16 rows and V vectors, side by side.
template <std::size_t V> struct alignas(64) TileSums {
  static constexpr std::size_t kRow = V * kLanes;
  float of[kTileSide * kRow];
};

// result = f(bias + factors[v] sums), or the sums added to it, of `height` rows.
template <std::size_t V>
ZOO_INLINE void end_tiles(const PackedProduct& p, std::size_t row, std::size_t height, std::size_t column,
                          const TileSums<V>& sums, const Lanes (&factors)[V]) {
  for_rows<4>(0, height, [&](auto tall, std::size_t r) {
    constexpr std::size_t R = decltype(tall)::value;
    Lanes results[R][V];
    first_sums(p, row + r, column, results);
    for (std::size_t i = 0; i < R; ++i)
      for (std::size_t v = 0; v < V; ++v)
        results[i][v] += load(sums.of + (r + i) * sums.kRow + v * kLanes) * factors[v];
    write_tile(p, row + r, column, results);
  });
}

// Calls f(row, height) for tiles of rows.
template <class F> ZOO_INLINE void for_tall_tiles(std::size_t rows, const F& f) {
  for (std::size_t row = 0; row < rows; row += kTileSide) f(row, smaller(rows - row, kTileSide));
}

template <std::size_t V>
void bfloat16_tiles(const PackedProduct& p, const std::byte* columns, std::size_t column,
                    const std::byte* next) {
  const std::size_t words = (p.weight->inputs + 1) / 2;
  const std::size_t blocks = (p.row_count + kTileSide - 1) / kTileSide;
  const std::size_t lines = next == nullptr || blocks < 2 ? 0 : (V * kTileSide + blocks - 1) / blocks;
  ShapedTiles tiles(words);
  TileSums<V> sums;
  Lanes ones[V];
  for (Lanes& factor : ones) factor = all(1);
  for_tall_tiles(p.row_count, [&](std::size_t row, std::size_t height) {
    tiles.set_height(height);
    clear_tiles<V>();
    add_tiles<Bfloat16Tiles, V>({p.rows.data + row * p.rows.row_bytes, p.rows.row_bytes, columns,
                                 kPanelVectors * sizeof(Words), words, next, lines});
    if (next != nullptr) next += words / kTileSide * lines * 64;
    store_tiles<V>(sums.of, sizeof(float) * sums.kRow);
    end_tiles(p, row, height, column, sums, ones);
  });
}

// Groups of inputs whose products wait in the L1 cache for the rows' scales.
constexpr std::size_t kGroupsAtOnce = 4;

// totals += the products of groups [first, last), each times its row's scale.
template <std::size_t V>
void add_groups(const PackedProduct& p, std::size_t row, std::size_t height, std::size_t first,
                std::size_t last, const TileSums<V>* products, TileSums<V>& totals) {
  const std::size_t groups = scales_in_row(WeightType::kInt8, p.weight->inputs);
  const ColumnMask<V> whole(V * kLanes);
  for_rows<4>(0, height, [&](auto tall, std::size_t top) {
    constexpr std::size_t R = decltype(tall)::value;
    Lanes sums[R][V];
    read_rows(whole, totals.of + top * totals.kRow, totals.kRow, sums);
    for (std::size_t i = first; i < last; ++i) {
      for (std::size_t r = 0; r < R; ++r) {
        const float* of_group = products[i - first].of + (top + r) * totals.kRow;
        const std::size_t at = (row + top + r) * groups + i;
        const std::int32_t zeros = 128 * p.rows.sums[at];
        const float scale = p.rows.scales[at];
        for (std::size_t v = 0; v < V; ++v)
          sums[r][v] += converted<Lanes>(kernels::load<IntegerLanes>(of_group + v * kLanes) - zeros) * scale;
      }
    }
    write_rows(whole, totals.of + top * totals.kRow, totals.kRow, sums);
  });
}

// The same numbers as without AMX: each group's sum is an integer.
template <std::size_t V>
void int8_tiles(const PackedProduct& p, const std::byte* columns, std::size_t column) {
  constexpr std::size_t kDepth = kPanelVectors * sizeof(Words), kWords = kByteGroup / 4;
  static_assert(kWords == kTileSide);
  const std::size_t words = (p.weight->inputs + 3) / 4, groups = (words + kWords - 1) / kWords;
  Lanes scales[V];
  for (std::size_t v = 0; v < V; ++v) scales[v] = load(p.weight->scales + column + v * kLanes);
  ShapedTiles tiles(words);
  TileSums<V> totals, products[kGroupsAtOnce];
  for_tall_tiles(p.row_count, [&](std::size_t row, std::size_t height) {
    tiles.set_height(height);
    totals = {};
    for (std::size_t first = 0; first < groups; first += kGroupsAtOnce) {
      const std::size_t last = smaller(first + kGroupsAtOnce, groups);
      for (std::size_t i = first; i < last; ++i) {
        const std::size_t word = i * kWords;
        clear_tiles<V>();
        add_tiles<ByteTiles, V>({p.rows.data + row * p.rows.row_bytes + i * kByteGroup, p.rows.row_bytes,
                                 columns + word * kDepth, kDepth, smaller(words - word, kWords)});
        store_tiles<V>(products[i - first].of, V * sizeof(Words));
      }
      add_groups(p, row, height, first, last, products, totals);
    }
    end_tiles(p, row, height, column, totals, scales);
  });
}

// Computes vectors [first, last) of a panel whose first column is `panel_column`, for all rows.
void multiply_by_amx(const PackedProduct& p, const std::byte* panel, std::size_t panel_column,
                     std::size_t first, std::size_t last, const std::byte* next) {
  for_vectors<kPanelVectors>(first, last, [&](auto vectors, std::size_t v) {
    constexpr std::size_t V = decltype(vectors)::value;
    const std::byte* columns = panel + v * sizeof(Words);
    const std::size_t column = panel_column + v * kLanes;
    if (p.weight->type == WeightType::kBfloat16) bfloat16_tiles<V>(p, columns, column, next);
    else int8_tiles<V>(p, columns, column);
  });
}

// Rows from which int8 by tiles is faster: the numbers are the same. Those of bfloat16 are not.
constexpr std::size_t kTallEnough = 8;

ZOO_INLINE bool is_for_amx(const PackedProduct& p) {
  return p.weight->type == WeightType::kBfloat16 ||
         (p.weight->type == WeightType::kInt8 && p.row_count >= kTallEnough);
}
#else
ZOO_INLINE bool is_for_amx(const PackedProduct&) { return false; }
ZOO_INLINE void multiply_by_amx(const PackedProduct&, const std::byte*, std::size_t, std::size_t, std::size_t,
                                const std::byte*) {}
#endif
