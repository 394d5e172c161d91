#include "models/kernels/matrix_product.h"

#include <new>

#include "models/kernels/activations.h"
#include "models/kernels/turn.h"

namespace zoo::kernels {
namespace {

// A panel of kPanelColumns columns and this depth fits the L2 cache together with the rows of a.
constexpr std::size_t kPanelDepth = 512;
constexpr std::size_t kVectors = kPanelColumns / kLanes;

// Rows of a transposed factor with a stride above a memory page are copied, this many at a time.
constexpr std::size_t kFarApart = 1024, kBlockRows = 10 * kTileRows;

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

// Part of the depth: starts at this row and that depth of a.
struct DepthPart {
  Matrix a;
  std::size_t first_row;
  std::size_t first, size;
};

// Up to kPanelColumns columns of b and part of its depth, row by row, with what they are multiplied by.
struct Panel {
  const DepthPart& part;
  const float* data;
  std::size_t row;
  std::size_t first_column, columns;
};

// Transposes 16 x 16: to[k * kPanelColumns + j] = from[k + j * stride].
ZOO_INLINE void turn_block(const float* from, std::size_t stride, float* to) {
  Lanes rows[kLanes];
  for (std::size_t j = 0; j < kLanes; ++j) rows[j] = load(from + j * stride);
  turn(rows);
  for (std::size_t k = 0; k < kLanes; ++k) store(to + k * kPanelColumns, rows[k]);
}

// Copies the panel's elements of b, zero-padded to the next whole vector.
void copy_panel(const Matrix& b, const Panel& panel, float* to) {
  const float* from = b.data + panel.part.first * b.row + panel.first_column * b.column;
  const std::size_t whole_columns = panel.columns / kLanes * kLanes,
                    padded = (panel.columns + kLanes - 1) / kLanes * kLanes;
  std::size_t turned = 0;
  if (b.row == 1) {
    turned = panel.part.size / kLanes * kLanes;
    for (std::size_t k = 0; k < turned; k += kLanes) {
      for (std::size_t j = 0; j < whole_columns; j += kLanes) {
        turn_block(from + k + j * b.column, b.column, to + k * kPanelColumns + j);
      }
    }
  }
  for (std::size_t k = 0; k < panel.part.size; ++k) {
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
  // Sums each part of the depth separately: in one long sum later terms would lose digits.
  const bool begins = panel.part.first == 0 && !p.adds;
  Lanes sums[R][V];
  for (std::size_t r = 0; r < R; ++r) {
    for (std::size_t v = 0; v < V; ++v)
      sums[r][v] = begins && p.bias != nullptr ? read(p.bias + column, v) : Lanes{};
  }
  const Matrix& a = panel.part.a;
  const float* rows = a.data + (row - panel.part.first_row) * a.row;
  const float* b = panel.data + (column - panel.first_column);
  for (std::size_t k = 0; k < panel.part.size; ++k) {
    Lanes columns_of_b[V];
    for (std::size_t v = 0; v < V; ++v) columns_of_b[v] = load(b + k * panel.row + v * kLanes);
    for (std::size_t r = 0; r < R; ++r) {
      const Lanes factor = all(rows[r * a.row + k * a.column]);
      for (std::size_t v = 0; v < V; ++v) sums[r][v] += factor * columns_of_b[v];
    }
  }
  const float* more = begins ? p.addend : p.result;
  for (std::size_t r = 0; r < R; ++r) {
    for (std::size_t v = 0; v < V; ++v) {
      float* to = result + r * p.result_row + v * kLanes;
      if (more != nullptr) sums[r][v] += read(more + (row + r) * p.result_row + column, v);
      if (whole || v + 1 < V) {
        store(to, sums[r][v]);
      } else {
        store_some(to, sums[r][v], tail);
      }
    }
  }
}

// Calls step(place, read, write) for vectors of rows that a tile has just left in the L1 cache.
template <class Step>
ZOO_INLINE void for_each_vector(const MatrixProduct& p, std::size_t first_row, std::size_t last_row,
                                std::size_t column, std::size_t columns, const Step& step) {
  for (std::size_t row = first_row; row < last_row; ++row) {
    std::size_t at = row * p.result_row + column;
    const std::size_t end = at + columns;
    for (; at + kLanes <= end; at += kLanes) step(at, load, store);
    if (at == end) continue;
    const auto read = [&](const float* from) { return load_some(from, end - at); };
    step(at, read, [&](float* to, const Lanes& lanes) { store_some(to, lanes, end - at); });
  }
}

// activated = f(result), result = f'(result); or result = f(result)
template <class Function>
void apply(const MatrixProduct& p, std::size_t first_row, std::size_t last_row, std::size_t column,
           std::size_t columns) {
  for_each_vector(p, first_row, last_row, column, columns,
                  [&](std::size_t at, const auto& read, const auto& write) {
                    const Lanes x = read(p.result + at);
                    const bool keeps = p.activated != nullptr;
                    write((keeps ? p.activated : p.result) + at, Function::value(x));
                    if (keeps) write(p.result + at, Function::slope(x));
                  });
}

void scale(const MatrixProduct& p, std::size_t first_row, std::size_t last_row, std::size_t column,
           std::size_t columns) {
  for_each_vector(p, first_row, last_row, column, columns,
                  [&](std::size_t at, const auto& read, const auto& write) {
                    write(p.result + at, read(p.result + at) * read(p.times + at));
                  });
}

void finish(const MatrixProduct& p, std::size_t first_row, std::size_t last_row, std::size_t column,
            std::size_t columns) {
  if (p.times != nullptr) return scale(p, first_row, last_row, column, columns);
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

// Computes R rows of the panel's product.
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
  if (panel.part.first + panel.part.size == p.depth)
    finish(p, row, row + R, panel.first_column, panel.columns);
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

// Adds the products of one part of the depth.
void multiply_part(const MatrixProduct& product, const Region& region, const DepthPart& part) {
  static thread_local const PanelMemory memory;
  for (std::size_t column = region.first_column; column < region.last_column; column += kPanelColumns) {
    const std::size_t left = region.last_column - column;
    Panel panel{.part = part,
                .data = product.b.data + part.first * product.b.row + column,
                .row = product.b.row,
                .first_column = column,
                .columns = left < kPanelColumns ? left : kPanelColumns};
    const bool in_place = product.b.column == 1 && panel.columns % kLanes == 0;
    if (!in_place) {
      copy_panel(product.b, panel, memory.get());
      panel.data = memory.get();
      panel.row = kPanelColumns;
    }
    product_with_panel(product, panel, region);
  }
}

// For a transposed factor with distant columns: copies some rows at a time, so that they are contiguous.
void multiply_rows_that_lie_apart(const MatrixProduct& product, const Region& region, const DepthPart& part) {
  static thread_local const PanelMemory memory;
  for (std::size_t row = region.first_row; row < region.last_row; row += kBlockRows) {
    const std::size_t left = region.last_row - row, rows = left < kBlockRows ? left : kBlockRows;
    const float* from = part.a.data + row - part.first_row;
    for (std::size_t k = 0; k < part.size; ++k)
      std::memcpy(memory.get() + k * kBlockRows, from + k * part.a.column, rows * sizeof(float));
    multiply_part(product, {row, row + rows, region.first_column, region.last_column},
                  {{memory.get(), 1, kBlockRows}, row, part.first, part.size});
  }
}

}  // namespace

void multiply(const MatrixProduct& product, const Region& region) {
  for (std::size_t depth = 0; depth < product.depth; depth += kPanelDepth) {
    const std::size_t left = product.depth - depth;
    const Matrix a{product.a.data + depth * product.a.column, product.a.row, product.a.column};
    const DepthPart part{a, 0, depth, left < kPanelDepth ? left : kPanelDepth};
    if (a.row == 1 && a.column > kFarApart) {
      multiply_rows_that_lie_apart(product, region, part);
    } else {
      multiply_part(product, region, part);
    }
  }
}

}  // namespace zoo::kernels
