#include "models/kernels/training/bfloat16_product.h"

#include "models/kernels/activations.h"
#include "models/kernels/tile.h"

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
  const std::size_t left = columns - panel * kPairPanel;
  return left < kPairPanel ? left : kPairPanel;
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
    const auto* all = reinterpret_cast<const float*>(sums);
    std::memcpy(p.sums + panel * kPairPanel, all, columns * sizeof(float));
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
  if (p.slope != nullptr) {
    PairRows(p.slope, nullptr, p.rows, p.columns, row, panel)
        .store(v, Function::slope(low), Function::slope(high));
  }
  to.store(v, Function::value(low), Function::value(high));
}

template <class Function, std::size_t R, std::size_t V>
__attribute__((noinline)) void store_packed_tile(const PairProduct& p, std::size_t row, std::size_t panel,
                                                 const Lanes (&sums)[R][V]) {
  for (std::size_t r = 0; r < R; r += 2) {
    // The row that completes the last pair is zero.
    const bool whole = row + r + 1 < p.rows;
    for (std::size_t v = 0; v < kPanelVectors; ++v) {
      store_packed<Function>(p, row + r, panel, v, v < V ? sums[r][v] : Lanes{},
                             whole && v < V ? sums[r + 1][v] : Lanes{});
    }
  }
}

// Computes R rows and the first V vectors of a panel.
template <std::size_t R, std::size_t V>
ZOO_INLINE void tile(const PairProduct& p, const Part& part, std::size_t row) {
  const std::size_t column = part.panel * kPairPanel, at = row * p.columns + column;
  const ColumnMask<V> mask(p.columns - column);
  // Sums each part of the depth separately: in one long sum later terms would lose digits.
  const bool begins = part.first_pair == 0 && !p.adds;
  Lanes sums[R][V];
  begin_sums(mask, begins && p.bias != nullptr ? p.bias + column : nullptr, sums);
  add_products<PairDot>({.rows = p.a.data + row / kPairPanel * p.a.panel + row % kPairPanel * p.a.row +
                                 part.first_pair * p.a.pair,
                         .row = p.a.row * sizeof(Pair),
                         .word = p.a.pair * sizeof(Pair),
                         .columns = p.b + (part.panel * p.pairs + part.first_pair) * kPairPanel,
                         .depth = kPairPanel * sizeof(Pair),
                         .words = part.pairs},
                        sums);
  if (const float* more = begins ? p.addend : p.result; more != nullptr)
    add_rows(mask, more + at, p.columns, sums, p.rows - row);
  if (p.result != nullptr) return write_rows(mask, p.result + at, p.columns, sums, p.rows - row);
  with_function(p.pointwise, [&](auto f) { store_packed_tile<decltype(f)>(p, row, part.panel, sums); });
}

template <std::size_t V>
void rows_of_panel(const PairProduct& p, const Part& part, std::size_t first_row, std::size_t last_row) {
  for_rows<kTallTile, 2>(first_row, last_row,
                         [&](auto height, std::size_t row) { tile<height(), V>(p, part, row); });
}

}  // namespace

void multiply(const PairProduct& p, const PairRegion& region) {
  // Sums that are packed immediately cannot be continued.
  const std::size_t deepest = p.result != nullptr ? kDeepest : p.pairs;
  for (std::size_t panel = region.first_panel; panel < region.last_panel; ++panel) {
    const std::size_t columns = columns_of_panel(p.columns, panel);
    for (std::size_t pair = 0; pair < p.pairs; pair += deepest) {
      const Part part{panel, pair, p.pairs - pair < deepest ? p.pairs - pair : deepest};
      std::size_t end = 0;
      for (std::size_t row = region.first_row; row < region.last_row; row = end) {
        // Tiles do not cross the panels of a.
        end = p.a.row == 1 ? (row / kPairPanel + 1) * kPairPanel : region.last_row;
        if (end > region.last_row) end = region.last_row;
        if (columns <= kLanes) {
          rows_of_panel<1>(p, part, row, end);
        } else if (columns <= 2 * kLanes) {
          rows_of_panel<2>(p, part, row, end);
        } else if (columns <= 3 * kLanes) {
          rows_of_panel<3>(p, part, row, end);
        } else {
          rows_of_panel<4>(p, part, row, end);
        }
      }
    }
  }
}

}  // namespace zoo::kernels
