#include "models/kernels/training/bfloat16_product.h"

#include "models/kernels/activations.h"
#include "models/kernels/cpu.h"
#include "models/kernels/tile.h"
#if defined(__AVX512BF16__)
#include "models/kernels/amx.h"
#endif

namespace zoo::kernels {
namespace {

constexpr std::size_t kPanelVectors = kPairPanel / kLanes;
// A panel with this many pairs fits the L2 cache together with the rows of a.
constexpr std::size_t kDeepest = 1024;

// Loads vector v of a row's part of a panel; `columns` of the panel count.
ZOO_INLINE Lanes load_of(const float* row, std::size_t v, std::size_t columns) {
  const std::size_t first = v * kLanes;
  return first < columns ? load_up_to(row + first, columns - first) : Lanes{};
}

ZOO_INLINE std::size_t columns_of_panel(std::size_t columns, std::size_t panel) {
  return smaller(columns - panel * kPairPanel, kPairPanel);
}

// Destination of two rows of a packed result.
struct PairRows {
  Pair *first, *second, *zipped;

  PairRows(Pair* by_rows, Pair* by_panels, std::size_t rows, std::size_t columns, std::size_t row,
           std::size_t panel)
      : first(by_rows == nullptr ? nullptr : by_rows + (row * panels_of(columns) + panel) * kPairPanel / 2),
        second(first == nullptr ? nullptr : first + panels_of(columns) * kPairPanel / 2),
        zipped(by_panels == nullptr ? nullptr : by_panels + (panel * pairs_of(rows) + row / 2) * kPairPanel) {
  }

  ZOO_INLINE void store(std::size_t v, const Lanes& low, const Lanes& high) const {
    if (first != nullptr) {
      kernels::store(first + v * kLanes / 2, to_bfloat16(low));
      kernels::store(second + v * kLanes / 2, to_bfloat16(high));
    }
    if (zipped != nullptr) kernels::store(zipped + v * kLanes, zip(low, high));
  }
};

}  // namespace

void pack_pairs(const PairPacking& p, std::size_t first, std::size_t last) {
  for (std::size_t panel = first; panel < last; ++panel) {
    const std::size_t columns = columns_of_panel(p.columns, panel);
    const float* data = p.data + panel * kPairPanel;
    Lanes sums[kPanelVectors] = {};
    for (std::size_t row = 0; row < p.rows; row += 2) {
      const PairRows to(p.by_rows, p.by_panels, p.rows, p.columns, row, panel);
      const float* low_row = data + row * p.columns;
      const bool whole = row + 1 < p.rows;
      for (std::size_t v = 0; v < kPanelVectors; ++v) {
        const Lanes low = load_of(low_row, v, columns);
        const Lanes high = whole ? load_of(low_row + p.columns, v, columns) : Lanes{};
        sums[v] += low + high;
        to.store(v, low, high);
      }
    }
    if (p.sums == nullptr) continue;
    std::memcpy(p.sums + panel * kPairPanel, sums, columns * sizeof(float));
  }
}

void pack_transposed_pairs(const PairPacking& p, std::size_t first, std::size_t last) {
  const std::size_t pairs = pairs_of(p.columns);
  for (std::size_t panel = first; panel < last; ++panel) {
    const std::size_t rows = columns_of_panel(p.rows, panel);
    const float* data = p.data + panel * kPairPanel * p.columns;
    Pair* to = p.by_panels + panel * pairs * kPairPanel;
    for (std::size_t pair = 0; pair < pairs; pair += kLanes) {
      const std::size_t left = p.columns - 2 * pair;
      for (std::size_t j = 0; j < kPairPanel; j += kLanes) {
        Lanes block[kLanes] = {};
        for (std::size_t r = 0; r < kLanes && j + r < rows; ++r) {
          const float* from = data + (j + r) * p.columns + 2 * pair;
          const Halves halves[2] = {to_bfloat16(load_of(from, 0, left)), to_bfloat16(load_of(from, 1, left))};
          block[r] = load(halves);
        }
        transpose(block);
        for (std::size_t i = 0; i < kLanes && pair + i < pairs; ++i)
          store(to + (pair + i) * kPairPanel + j, block[i]);
      }
    }
  }
}

void sum_pairs(const Pair* by_panels, std::size_t pairs, float* sums, std::size_t columns, std::size_t first,
               std::size_t last) {
  for (std::size_t panel = first; panel < last; ++panel) {
    Lanes totals[kPanelVectors] = {};
    for (std::size_t p = 0; p < pairs; ++p) {
      for (std::size_t v = 0; v < kPanelVectors; ++v) {
        const auto words = load<Words>(by_panels + (panel * pairs + p) * kPairPanel + v * kLanes);
        totals[v] += low_half(words) + high_half(words);
      }
    }
    std::memcpy(sums + panel * kPairPanel, totals, columns_of_panel(columns, panel) * sizeof(float));
  }
}

PairFactor factor_by_rows(const Pair* data, std::size_t columns) {
  const std::size_t row = panels_of(columns) * kPairPanel / 2;
  return {data, row, 1, row * kPairPanel};
}

PairFactor factor_by_panels(const Pair* data, std::size_t rows) {
  return {data, 1, kPairPanel, pairs_of(rows) * kPairPanel};
}

namespace {

// Part of the depth of one panel of b.
struct Part {
  std::size_t panel, first_pair, pairs;
};

template <class Function>
ZOO_INLINE void store_packed(const PairProduct& p, std::size_t row, std::size_t panel, std::size_t v,
                             const Lanes& low, const Lanes& high) {
  const PairRows to(p.by_rows, p.by_panels, p.rows, p.columns, row, panel);
  if (p.times != nullptr) {
    const PairRows at(const_cast<Pair*>(p.times), nullptr, p.rows, p.columns, row, panel);
    const auto factor = [&](const Pair* row) { return from_bfloat16(load<Halves>(row + v * kLanes / 2)); };
    to.store(v, low * factor(at.first), high * factor(at.second));
    return;
  }
  if (p.slope != nullptr)
    PairRows(p.slope, nullptr, p.rows, p.columns, row, panel)
        .store(v, Function::slope(low), Function::slope(high));
  to.store(v, Function::value(low), Function::value(high));
}

template <class Function, std::size_t R, std::size_t V>
__attribute__((noinline)) void store_packed_tile(const PairProduct& p, std::size_t row, std::size_t panel,
                                                 const Lanes (&sums)[R][V]) {
  for (std::size_t r = 0; r < R; r += 2) {
    // The row that completes the last pair is zero.
    const bool whole = row + r + 1 < p.rows;
    for (std::size_t v = 0; v < kPanelVectors; ++v)
      store_packed<Function>(p, row + r, panel, v, v < V ? sums[r][v] : Lanes{},
                             whole && v < V ? sums[r + 1][v] : Lanes{});
  }
}

// R rows and the first V vectors of a panel: their initial sums, and what happens to the result. Each part of
// the depth is summed separately: in one long sum, later terms would lose digits.
template <std::size_t R, std::size_t V> struct PairTile {
  const PairProduct& p;
  const Part& part;
  std::size_t row, column = part.panel * kPairPanel, at = row * p.columns + column;
  ColumnMask<V> mask{p.columns - column};
  bool begins = part.first_pair == 0 && !p.adds;

  ZOO_INLINE void begin(Lanes (&sums)[R][V]) const {
    begin_sums(mask, begins && p.bias != nullptr ? p.bias + column : nullptr, sums);
  }
  ZOO_INLINE void end(Lanes (&sums)[R][V]) const {
    if (const float* more = begins ? p.addend : p.result; more != nullptr)
      add_rows(mask, more + at, p.columns, sums, p.rows - row);
    if (p.result != nullptr) return write_rows(mask, p.result + at, p.columns, sums, p.rows - row);
    with_function(p.pointwise, [&](auto f) { store_packed_tile<decltype(f)>(p, row, part.panel, sums); });
  }
};

const Pair* rows_of(const PairProduct& p, const Part& part, std::size_t row) {
  return p.a.data + row / kPairPanel * p.a.panel + row % kPairPanel * p.a.row + part.first_pair * p.a.pair;
}

const Pair* columns_of(const PairProduct& p, const Part& part) {
  return p.b + (part.panel * p.pairs + part.first_pair) * kPairPanel;
}

template <std::size_t R, std::size_t V>
ZOO_INLINE void tile(const PairProduct& p, const Part& part, std::size_t row) {
  const PairTile<R, V> tile{p, part, row};
  Lanes sums[R][V];
  tile.begin(sums);
  add_products<PairDot>({.rows = rows_of(p, part, row),
                         .row = p.a.row * sizeof(Pair),
                         .word = p.a.pair * sizeof(Pair),
                         .columns = columns_of(p, part),
                         .depth = kPairPanel * sizeof(Pair),
                         .words = part.pairs},
                        sums);
  tile.end(sums);
}

// Calls f(V as a constant) for the vectors of a panel with this many columns.
template <class F> ZOO_INLINE void with_vectors(std::size_t columns, const F& f) {
  if (columns <= kLanes) return f(std::integral_constant<std::size_t, 1>{});
  if (columns <= 2 * kLanes) return f(std::integral_constant<std::size_t, 2>{});
  if (columns <= 3 * kLanes) return f(std::integral_constant<std::size_t, 3>{});
  f(std::integral_constant<std::size_t, 4>{});
}

#if defined(__AVX512BF16__)
template <std::size_t V>
void end_amx(const PairProduct& p, const Part& part, std::size_t row, std::size_t height, const float* sums) {
  for (std::size_t r = 0; r < height; r += 2, sums += 2 * kPairPanel) {
    const PairTile<2, V> tile{p, part, row + r};
    Lanes two[2][V];
    tile.begin(two);
    add_rows(ColumnMask<V>(V * kLanes), sums, kPairPanel, two);
    tile.end(two);
  }
}

// Rows of pairs, `stride` apart, from `row` of the result on, and a part of a panel.
ZOO_AMX void multiply_tiles(const PairProduct& p, const Part& part, std::size_t row, std::size_t last_row,
                            const Pair* rows, std::size_t stride) {
  constexpr std::size_t kDepth = kPairPanel * sizeof(Pair);
  alignas(64) float sums[kTileSide * kPairPanel];
  const std::size_t columns = columns_of_panel(p.columns, part.panel);
  ShapedTiles tiles(part.pairs);
  for (; row < last_row; row += kTileSide, rows += kTileSide * stride) {
    const std::size_t height = smaller(last_row - row, kTileSide);
    tiles.set_height(height);
    clear_tiles<kPanelVectors>();
    add_tiles<Bfloat16Tiles, kPanelVectors>(
        {rows, stride * sizeof(Pair), columns_of(p, part), kDepth, part.pairs});
    store_tiles<kPanelVectors>(sums, kDepth);
    with_vectors(columns, [&](auto vectors) { end_amx<vectors()>(p, part, row, height, sums); });
  }
}

// The same for a left factor by panels: pairs of many rows are turned at a time, for all panels.
void multiply_turned(const PairProduct& p, const PairRegion& region) {
  constexpr std::size_t kRows = 512, kPairs = 128;
  alignas(64) Pair turned[kRows * kPairs];
  for (std::size_t row = region.first_row; row < region.last_row; row += kRows) {
    const std::size_t last = smaller(row + kRows, region.last_row);
    for (std::size_t pair = 0; pair < p.pairs; pair += kPairs) {
      Part part{region.first_panel, pair, smaller(p.pairs - pair, kPairs)};
      for (std::size_t r = row; r < last; r += kTileSide)
        turn(rows_of(p, part, r), p.a.pair, part.pairs, turned + (r - row) * kPairs, kPairs);
      settle();
      for (; part.panel < region.last_panel; ++part.panel) multiply_tiles(p, part, row, last, turned, kPairs);
    }
  }
}
bool uses_amx() { return instruction_set() == InstructionSet::kAmxBf16; }
#else
bool uses_amx() { return false; }
void multiply_turned(const PairProduct&, const PairRegion&) {}
#endif

void multiply_rows(const PairProduct& p, const Part& part, const PairRegion& region) {
#if defined(__AVX512BF16__)
  if (uses_amx())
    return multiply_tiles(p, part, region.first_row, region.last_row, rows_of(p, part, region.first_row),
                          p.a.row);
#endif
  std::size_t end = 0;
  for (std::size_t row = region.first_row; row < region.last_row; row = end) {
    // Tiles do not cross the panels of a.
    end = p.a.row == 1 ? smaller((row / kPairPanel + 1) * kPairPanel, region.last_row) : region.last_row;
    with_vectors(columns_of_panel(p.columns, part.panel), [&](auto vectors) {
      constexpr std::size_t V = decltype(vectors)::value;
      for_rows<kTallTile, 2>(row, end, [&](auto height, std::size_t at) { tile<height(), V>(p, part, at); });
    });
  }
}

}  // namespace

void multiply(const PairProduct& p, const PairRegion& region) {
  if (uses_amx() && p.a.row == 1) return multiply_turned(p, region);
  // Sums that are packed immediately cannot be continued.
  const std::size_t deepest = p.result != nullptr ? kDeepest : p.pairs;
  for (std::size_t panel = region.first_panel; panel < region.last_panel; ++panel) {
    for (std::size_t pair = 0; pair < p.pairs; pair += deepest)
      multiply_rows(p, {panel, pair, smaller(p.pairs - pair, deepest)}, region);
  }
}

}  // namespace zoo::kernels
