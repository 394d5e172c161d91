#include "models/kernels/bfloat16_product.h"

#include "models/kernels/activations.h"
#include "models/kernels/pair_vector.h"
#include "models/kernels/turn.h"

namespace zoo::kernels {
namespace {

constexpr std::size_t kPanelVectors = kPairPanel / kLanes;
// A panel with this many pairs fits the L2 cache together with the rows of a.
constexpr std::size_t kDeepest = 1024;

// Loads vector v of a row's part of a panel; `columns` of the panel count.
ZOO_INLINE Lanes load_of(const float* row, std::size_t v, std::size_t columns) {
  const std::size_t first = v * kLanes;
  if (first + kLanes <= columns) return load(row + first);
  return first < columns ? load_some(row + first, columns - first) : Lanes{};
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
      const HalfWords halves[2] = {squeeze(low), squeeze(high)};
      std::memcpy(first + v * kLanes / 2, &halves[0], sizeof halves[0]);
      std::memcpy(second + v * kLanes / 2, &halves[1], sizeof halves[1]);
    }
    if (zipped != nullptr) {
      const Words words = zip(low, high);
      std::memcpy(zipped + v * kLanes, &words, sizeof words);
    }
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
          HalfWords halves[2] = {squeeze(load_of(from, 0, left)), squeeze(load_of(from, 1, left))};
          std::memcpy(&block[r], halves, sizeof halves);
        }
        turn(block);
        for (std::size_t i = 0; i < kLanes && pair + i < pairs; ++i)
          std::memcpy(to + (pair + i) * kPairPanel + j, &block[i], sizeof block[i]);
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
        const Words words = load_words(by_panels + (panel * pairs + p) * kPairPanel + v * kLanes);
        totals[v] += bits<Lanes>(words << 16) + bits<Lanes>(words & 0xFFFF0000U);
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
    to.store(v, low * widen(at.first + v * kLanes / 2), high * widen(at.second + v * kLanes / 2));
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

struct Identity {
  static ZOO_INLINE Lanes value(const Lanes& x) { return x; }
  static ZOO_INLINE Lanes slope(const Lanes&) { return all(1.0F); }
};

template <std::size_t R, std::size_t V>
ZOO_INLINE void store_tile(const PairProduct& p, std::size_t row, std::size_t panel,
                           const Lanes (&sums)[R][V]) {
  if (p.result != nullptr) {
    const std::size_t columns = columns_of_panel(p.columns, panel);
    for (std::size_t r = 0; r < R && row + r < p.rows; ++r) {
      float* to = p.result + (row + r) * p.columns + panel * kPairPanel;
      for (std::size_t v = 0; v < V; ++v) {
        const std::size_t first = v * kLanes;
        if (first + kLanes <= columns) {
          store(to + first, sums[r][v]);
        } else if (first < columns) {
          store_some(to + first, sums[r][v], columns - first);
        }
      }
    }
    return;
  }
  switch (p.pointwise) {
    case Pointwise::kNone:
      return store_packed_tile<Identity>(p, row, panel, sums);
    case Pointwise::kRelu:
      return store_packed_tile<Relu>(p, row, panel, sums);
    case Pointwise::kGelu:
      return store_packed_tile<Gelu>(p, row, panel, sums);
    case Pointwise::kGeluTanh:
      return store_packed_tile<GeluTanh>(p, row, panel, sums);
    case Pointwise::kSilu:
      return store_packed_tile<Silu>(p, row, panel, sums);
  }
}

// Computes R rows and the first V vectors of a panel.
template <std::size_t R, std::size_t V>
ZOO_INLINE void tile(const PairProduct& p, const Part& part, std::size_t row) {
  const std::size_t columns = columns_of_panel(p.columns, part.panel);
  // Sums each part of the depth separately: in one long sum later terms would lose digits.
  const bool begins = part.first_pair == 0 && !p.adds;
  Lanes sums[R][V];
  for (std::size_t r = 0; r < R; ++r) {
    for (std::size_t v = 0; v < V; ++v) {
      sums[r][v] =
          begins && p.bias != nullptr ? load_of(p.bias + part.panel * kPairPanel, v, columns) : Lanes{};
    }
  }
  const Pair* a =
      p.a.data + row / kPairPanel * p.a.panel + row % kPairPanel * p.a.row + part.first_pair * p.a.pair;
  const Pair* b = p.b + (part.panel * p.pairs + part.first_pair) * kPairPanel;
  for (std::size_t k = 0; k < part.pairs; ++k) {
    Words columns_of_b[V];
    for (std::size_t v = 0; v < V; ++v) columns_of_b[v] = load_words(b + k * kPairPanel + v * kLanes);
    for (std::size_t r = 0; r < R; ++r) {
      const Pair factor = a[r * p.a.row + k * p.a.pair];
      for (std::size_t v = 0; v < V; ++v) sums[r][v] = add_products(sums[r][v], factor, columns_of_b[v]);
    }
  }
  const float* more = begins ? p.addend : p.result;
  for (std::size_t r = 0; more != nullptr && r < R && row + r < p.rows; ++r) {
    const float* from = more + (row + r) * p.columns + part.panel * kPairPanel;
    for (std::size_t v = 0; v < V; ++v) sums[r][v] += load_of(from, v, columns);
  }
  store_tile(p, row, part.panel, sums);
}

template <std::size_t V>
void rows_of_panel(const PairProduct& p, const Part& part, std::size_t first_row, std::size_t last_row) {
  std::size_t row = first_row;
  for (; row + 6 <= last_row; row += 6) tile<6, V>(p, part, row);
  if (row + 4 <= last_row) {
    tile<4, V>(p, part, row);
    row += 4;
  }
  if (row < last_row) tile<2, V>(p, part, row);
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
        } else {
          rows_of_panel<4>(p, part, row, end);
        }
      }
    }
  }
}

}  // namespace zoo::kernels
