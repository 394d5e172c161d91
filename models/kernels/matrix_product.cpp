#include "models/kernels/matrix_product.h"

#include <new>

#include "models/kernels/activations.h"

namespace zoo::kernels {
namespace {

// A panel of kPanelColumns columns and this depth fits the second-level cache beside the rows of a.
constexpr std::size_t kPanelDepth = 512;
constexpr std::size_t kVectors = kPanelColumns / kLanes;

class PanelMemory {
 public:
  PanelMemory()
      : data_(static_cast<float*>(::operator new(kPanelDepth* kPanelColumns * sizeof(float), kAlignment))) {}
  PanelMemory(const PanelMemory&) = delete;
  PanelMemory& operator=(const PanelMemory&) = delete;
  ~PanelMemory() { ::operator delete(data_, kAlignment); }
  float* get() const { return data_; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  float* data_;
};

// Up to kPanelColumns columns of b and a part of its depth, row after row.
struct Panel {
  const float* data;
  std::size_t row;
  std::size_t first_column, columns;
  std::size_t first_depth, depth;
};

// Turns a 16 x 16 block: in step S lane l of row i changes places with lane l ^ S of row i ^ S where they
// differ in that bit.
template <std::size_t S>
ZOO_INLINE void exchange(Lanes (&rows)[kLanes]) {
#define ZOO_LOW(l) ((l)&S ? 16 + (l)-S : (l))
#define ZOO_HIGH(l) ((l)&S ? 16 + (l) : (l) + S)
#define ZOO_SIXTEEN(f) \
  f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7), f(8), f(9), f(10), f(11), f(12), f(13), f(14), f(15)
  for (std::size_t i = 0; i < kLanes; ++i) {
    if ((i & S) != 0) continue;
    const Lanes x = rows[i], y = rows[i + S];
    rows[i] = __builtin_shufflevector(x, y, ZOO_SIXTEEN(ZOO_LOW));
    rows[i + S] = __builtin_shufflevector(x, y, ZOO_SIXTEEN(ZOO_HIGH));
  }
#undef ZOO_SIXTEEN
#undef ZOO_HIGH
#undef ZOO_LOW
}

// to[k * kPanelColumns + j] = from[k + j * stride] for 16 x 16 of them.
ZOO_INLINE void turn_block(const float* from, std::size_t stride, float* to) {
  Lanes rows[kLanes];
  for (std::size_t j = 0; j < kLanes; ++j) rows[j] = load(from + j * stride);
  exchange<1>(rows);
  exchange<2>(rows);
  exchange<4>(rows);
  exchange<8>(rows);
  for (std::size_t k = 0; k < kLanes; ++k) store(to + k * kPanelColumns, rows[k]);
}

// Copies the panel's elements of b; zeros up to the next whole vector.
void copy_panel(const Matrix& b, const Panel& panel, float* to) {
  const float* from = b.data + panel.first_depth * b.row + panel.first_column * b.column;
  const std::size_t whole_columns = panel.columns / kLanes * kLanes,
                    padded = (panel.columns + kLanes - 1) / kLanes * kLanes;
  std::size_t turned = 0;
  if (b.row == 1) {
    turned = panel.depth / kLanes * kLanes;
    for (std::size_t k = 0; k < turned; k += kLanes) {
      for (std::size_t j = 0; j < whole_columns; j += kLanes) {
        turn_block(from + k + j * b.column, b.column, to + k * kPanelColumns + j);
      }
    }
  }
  for (std::size_t k = 0; k < panel.depth; ++k) {
    std::size_t j = k < turned ? whole_columns : 0;
    for (; j < panel.columns; ++j) to[k * kPanelColumns + j] = from[k * b.row + j * b.column];
    for (; j < padded; ++j) to[k * kPanelColumns + j] = 0;
  }
}

// Rows and vectors of a tile of the result, in registers while it is summed. `columns` of its last vector
// count.
template <std::size_t R, std::size_t V>
ZOO_INLINE void tile(const MatrixProduct& p, const Panel& panel, std::size_t row, std::size_t column,
                     std::size_t columns) {
  float* result = p.result + row * p.result_row + column;
  const bool whole = columns == V * kLanes;
  const std::size_t tail = columns - (V - 1) * kLanes;
  const auto read = [&](const float* from, std::size_t v) {
    return whole || v + 1 < V ? load(from + v * kLanes) : load_some(from + v * kLanes, tail);
  };
  Lanes sums[R][V];
  for (std::size_t r = 0; r < R; ++r) {
    for (std::size_t v = 0; v < V; ++v) {
      if (panel.first_depth > 0) {
        sums[r][v] = read(result + r * p.result_row, v);
      } else {
        sums[r][v] = p.bias != nullptr ? read(p.bias + column, v) : Lanes{};
      }
    }
  }
  const float* a = p.a.data + row * p.a.row + panel.first_depth * p.a.column;
  const float* b = panel.data + (column - panel.first_column);
  for (std::size_t k = 0; k < panel.depth; ++k) {
    Lanes columns_of_b[V];
    for (std::size_t v = 0; v < V; ++v) columns_of_b[v] = load(b + k * panel.row + v * kLanes);
    for (std::size_t r = 0; r < R; ++r) {
      const Lanes factor = all(a[r * p.a.row + k * p.a.column]);
      for (std::size_t v = 0; v < V; ++v) sums[r][v] += factor * columns_of_b[v];
    }
  }
  for (std::size_t r = 0; r < R; ++r) {
    for (std::size_t v = 0; v < V; ++v) {
      float* to = result + r * p.result_row + v * kLanes;
      if (whole || v + 1 < V) {
        store(to, sums[r][v]);
      } else {
        store_some(to, sums[r][v], tail);
      }
    }
  }
}

// activated = f(result), result *= f'(slope_at), for rows that a tile has just left in the first-level cache.
template <class Function>
void apply(const MatrixProduct& p, std::size_t first_row, std::size_t last_row, std::size_t column,
           std::size_t columns) {
  const auto step = [&](std::size_t at, const auto& read, const auto& write) {
    const Lanes x = read(p.result + at);
    if (p.activated != nullptr) write(p.activated + at, Function::value(x));
    if (p.slope_at != nullptr) write(p.result + at, x * Function::slope(read(p.slope_at + at)));
  };
  for (std::size_t row = first_row; row < last_row; ++row) {
    std::size_t at = row * p.result_row + column;
    const std::size_t end = at + columns;
    for (; at + kLanes <= end; at += kLanes) step(at, load, store);
    if (at == end) continue;
    const auto read = [&](const float* from) { return load_some(from, end - at); };
    step(at, read, [&](float* to, const Lanes& lanes) { store_some(to, lanes, end - at); });
  }
}

void finish(const MatrixProduct& p, std::size_t first_row, std::size_t last_row, std::size_t column,
            std::size_t columns) {
  switch (p.pointwise) {
    case Pointwise::kNone:
      return;
    case Pointwise::kRelu:
      return apply<Relu>(p, first_row, last_row, column, columns);
    case Pointwise::kGelu:
      return apply<Gelu>(p, first_row, last_row, column, columns);
    case Pointwise::kGeluTanh:
      return apply<GeluTanh>(p, first_row, last_row, column, columns);
    case Pointwise::kSilu:
      return apply<Silu>(p, first_row, last_row, column, columns);
  }
}

// R rows of the panel's product.
template <std::size_t R>
void rows_of_panel(const MatrixProduct& p, const Panel& panel, std::size_t row) {
  const std::size_t end = panel.first_column + panel.columns;
  std::size_t column = panel.first_column;
  if (panel.columns == kPanelColumns) {
    tile<R, kVectors>(p, panel, row, column, kPanelColumns);
    column = end;
  }
  for (; column + 2 * kLanes <= end; column += 2 * kLanes) tile<R, 2>(p, panel, row, column, 2 * kLanes);
  for (; column < end; column += kLanes) {
    tile<R, 1>(p, panel, row, column, end - column < kLanes ? end - column : kLanes);
  }
  if (panel.first_depth + panel.depth == p.depth) finish(p, row, row + R, panel.first_column, panel.columns);
}

void product_with_panel(const MatrixProduct& p, const Panel& panel, const Region& region) {
  std::size_t row = region.first_row;
  for (; row + kTileRows <= region.last_row; row += kTileRows) rows_of_panel<kTileRows>(p, panel, row);
  if (row + 4 <= region.last_row) {
    rows_of_panel<4>(p, panel, row);
    row += 4;
  }
  if (row + 2 <= region.last_row) {
    rows_of_panel<2>(p, panel, row);
    row += 2;
  }
  if (row < region.last_row) rows_of_panel<1>(p, panel, row);
}

}  // namespace

void multiply(const MatrixProduct& product, const Region& region) {
  static thread_local const PanelMemory memory;
  for (std::size_t depth = 0; depth < product.depth; depth += kPanelDepth) {
    for (std::size_t column = region.first_column; column < region.last_column; column += kPanelColumns) {
      const std::size_t columns_left = region.last_column - column, depth_left = product.depth - depth;
      Panel panel{.data = product.b.data + depth * product.b.row + column,
                  .row = product.b.row,
                  .first_column = column,
                  .columns = columns_left < kPanelColumns ? columns_left : kPanelColumns,
                  .first_depth = depth,
                  .depth = depth_left < kPanelDepth ? depth_left : kPanelDepth};
      const bool in_place = product.b.column == 1 && panel.columns % kLanes == 0;
      if (!in_place) {
        copy_panel(product.b, panel, memory.get());
        panel.data = memory.get();
        panel.row = kPanelColumns;
      }
      product_with_panel(product, panel, region);
    }
  }
}

}  // namespace zoo::kernels
