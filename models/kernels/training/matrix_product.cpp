#include "models/kernels/training/matrix_product.h"

#include "models/kernels/aligned_memory.h"
#include "models/kernels/tile.h"
#include "models/kernels/training/finish_rows.h"

namespace zoo::kernels::ZOO_KERNELS_FOR {
namespace {

// Blocks of the loops (Goto and van de Geijn, 2008): a panel of b with this depth and a block of a's rows
// share the L2 cache; copies of kBlockColumns columns of b wait in the L3 cache for the blocks of rows.
constexpr std::size_t kPanelDepth = 512, kBlockRows = 20 * kTileRows, kBlockColumns = 8 * kPanelColumns;

// From this many rows of a on it pays to copy a panel of b whose rows lie apart: it needs fewer pages then,
// and all sets of the cache.
constexpr std::size_t kWorthCopying = 4 * kTileRows;

// A type of this file only: otherwise the linker might keep a destructor compiled for AVX-512.
struct BlockMemory {
  AlignedMemory<float> rows{kPanelDepth * kBlockRows}, columns{kPanelDepth * kBlockColumns};
};

// Part of the depth, for rows of a from `first_row` on: element k of row i is at
// data[i / kTileRows * tile + i % kTileRows * row + k * column].
struct DepthPart {
  const float* data;
  std::size_t tile, row, column;
  std::size_t first_row;
  std::size_t first, size;

  ZOO_INLINE const float* at(std::size_t i) const {
    return data + (i - first_row) / kTileRows * tile + (i - first_row) % kTileRows * row;
  }
};

// Up to kPanelColumns columns of b and part of its depth, row by row.
struct Panel {
  const float* data;
  std::size_t row;
  std::size_t first_column, columns;
};

// Transposes 16 x 16: to[k * kPanelColumns + j] = from[k + j * stride].
ZOO_INLINE void transpose_block(const float* from, std::size_t stride, float* to) {
  Lanes rows[kLanes];
  for (std::size_t j = 0; j < kLanes; ++j) rows[j] = load(from + j * stride);
  transpose(rows);
  for (std::size_t k = 0; k < kLanes; ++k) store(to + k * kPanelColumns, rows[k]);
}

// Copies `depth` rows of b from here on, `columns` of each, zero-padded to full vectors.
void copy_panel(const Matrix& b, std::size_t depth, std::size_t columns, float* to) {
  const float* from = b.data;
  const std::size_t whole_columns = columns / kLanes * kLanes;
  std::size_t transposed = 0;
  if (b.row == 1) {
    transposed = depth / kLanes * kLanes;
    for (std::size_t k = 0; k < transposed; k += kLanes) {
      for (std::size_t j = 0; j < whole_columns; j += kLanes)
        transpose_block(from + k + j * b.column, b.column, to + k * kPanelColumns + j);
    }
  }
  for (std::size_t k = 0; k < depth; ++k) {
    std::size_t j = k < transposed ? whole_columns : 0;
    if (b.column == 1)
      for (; j < whole_columns; j += kLanes) store(to + k * kPanelColumns + j, load(from + k * b.row + j));
    for (; j < columns; ++j) to[k * kPanelColumns + j] = from[k * b.row + j * b.column];
    for (; j < padded(columns); ++j) to[k * kPanelColumns + j] = 0;
  }
}

// Copies rows [first, last) of a transposed factor tile by tile, so that what a step multiplies lies
// together; some steps at a time, so that their rows of a stay in the L1 cache for all tiles.
void copy_tiles(const Matrix& a, std::size_t depth, std::size_t first, std::size_t last, float* to) {
  constexpr std::size_t kSteps = 32;
  for (std::size_t step = 0; step < depth; step += kSteps) {
    const std::size_t end = smaller(step + kSteps, depth);
    for (std::size_t row = first; row < last; row += kTileRows) {
      const std::size_t rows = smaller(last - row, kTileRows);
      float* tile = to + (row - first) * depth;
      for (std::size_t k = step; k < end; ++k) {
        const float* from = a.data + k * a.column + row;
        if (rows == kTileRows) std::memcpy(tile + k * kTileRows, from, kTileRows * sizeof(float));
        else std::memcpy(tile + k * kTileRows, from, rows * sizeof(float));
      }
    }
  }
}

// Computes a tile of the result from this row and column on; `columns` count.
template <std::size_t R, std::size_t V>
ZOO_INLINE void tile(const MatrixProduct& p, const DepthPart& part, const Panel& panel, std::size_t row,
                     std::size_t column, std::size_t columns) {
  const ColumnMask<V> mask(columns);
  // Sums each part of the depth separately: in one long sum later terms would lose digits.
  const bool begins = part.first == 0 && !p.adds;
  const std::size_t at = row * p.result_row + column;
  for (std::size_t r = 0; r < R; ++r)
    for (std::size_t v = 0; v < V; ++v) __builtin_prefetch(p.result + at + r * p.result_row + v * kLanes, 1);
  Lanes sums[R][V];
  begin_sums(mask, begins && p.bias != nullptr ? p.bias + column : nullptr, sums);
  add_products<FloatDot>({.rows = part.at(row),
                          .row = part.row * sizeof(float),
                          .word = part.column * sizeof(float),
                          .columns = panel.data + (column - panel.first_column),
                          .depth = panel.row * sizeof(float),
                          .words = part.size},
                         sums);
  if (const float* more = begins ? p.addend : p.result; more != nullptr)
    add_rows(mask, more + at, p.result_row, sums);
  write_rows(mask, p.result + at, p.result_row, sums);
}

// Computes R rows of the panel's product.
template <std::size_t R>
void rows_of_panel(const MatrixProduct& p, const DepthPart& part, const Panel& panel, std::size_t row) {
  for_vectors<kWidestTile<R>>(0, vectors_of(panel.columns), [&](auto width, std::size_t v) {
    tile<R, width()>(p, part, panel, row, panel.first_column + v * kLanes, panel.columns - v * kLanes);
  });
  if (part.first + part.size == p.depth) finish_rows(p, row, row + R, panel.first_column, panel.columns);
}

// Adds the products of `depth` steps from `first` on for up to kBlockColumns columns.
void multiply_block(const MatrixProduct& p, const Region& region, std::size_t first, std::size_t depth) {
  static thread_local const BlockMemory memory;
  const std::size_t rows = region.last_row - region.first_row;
  Panel panels[kBlockColumns / kPanelColumns];
  std::size_t count = 0;
  for (std::size_t column = region.first_column; column < region.last_column; column += kPanelColumns) {
    const std::size_t columns = smaller(region.last_column - column, kPanelColumns);
    const Matrix b{p.b.data + first * p.b.row + column * p.b.column, p.b.row, p.b.column};
    Panel& panel = panels[count] = {b.data, b.row, column, columns};
    const bool far = b.row > kPanelColumns && rows >= kWorthCopying;
    if (b.column != 1 || columns % kLanes != 0 || far) {
      float* copy = memory.columns.get() + count * kPanelDepth * kPanelColumns;
      copy_panel(b, depth, columns, copy);
      panel.data = copy;
      panel.row = kPanelColumns;
    }
    ++count;
  }
  for (std::size_t row = region.first_row; row < region.last_row; row += kBlockRows) {
    const std::size_t end = smaller(row + kBlockRows, region.last_row);
    const Matrix a{p.a.data + first * p.a.column, p.a.row, p.a.column};
    DepthPart part{a.data + row * a.row, kTileRows * a.row, a.row, a.column, row, first, depth};
    if (a.row == 1) {
      copy_tiles(a, depth, row, end, memory.rows.get());
      part = {memory.rows.get(), kTileRows * depth, 1, kTileRows, row, first, depth};
    }
    for (std::size_t i = 0; i < count; ++i)
      for_rows<kTallTile>(row, end, [&](auto height, std::size_t from) {
        rows_of_panel<height()>(p, part, panels[i], from);
      });
  }
}

}  // namespace

void multiply(const MatrixProduct& product, const Region& region) {
  for (std::size_t column = region.first_column; column < region.last_column; column += kBlockColumns) {
    const Region block{region.first_row, region.last_row, column,
                       smaller(column + kBlockColumns, region.last_column)};
    for (std::size_t depth = 0; depth < product.depth; depth += kPanelDepth)
      multiply_block(product, block, depth, smaller(product.depth - depth, kPanelDepth));
  }
}

}  // namespace zoo::kernels::ZOO_KERNELS_FOR
