#include "models/kernels/training/matrix_product.h"

#include "models/kernels/activations.h"
#include "models/kernels/aligned_memory.h"
#include "models/kernels/tile.h"

namespace zoo::kernels::ZOO_KERNELS_FOR {
namespace {

// A panel of kPanelColumns columns and this depth fits the L2 cache together with the rows of a.
constexpr std::size_t kPanelDepth = 512;

// Rows of a transposed factor with a stride above a memory page are copied, this many at a time.
constexpr std::size_t kFarApart = 1024, kBlockRows = 10 * kTileRows;

// A type of this file only: otherwise the linker might keep a destructor compiled for AVX-512.
struct PanelMemory {
  AlignedMemory<float> floats{kPanelDepth * kPanelColumns};
};

// Part of the depth: starts at this row and that depth of a.
struct DepthPart {
  Matrix a;
  std::size_t first_row;
  std::size_t first, size;
};

// Up to kPanelColumns columns of b and part of its depth, row by row, with their left factor.
struct Panel {
  const DepthPart& part;
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

// Copies the panel's elements of b, zero-padded to full vectors.
void copy_panel(const Matrix& b, const Panel& panel, float* to) {
  const float* from = b.data + panel.part.first * b.row + panel.first_column * b.column;
  const std::size_t whole_columns = panel.columns / kLanes * kLanes;
  std::size_t transposed = 0;
  if (b.row == 1) {
    transposed = panel.part.size / kLanes * kLanes;
    for (std::size_t k = 0; k < transposed; k += kLanes) {
      for (std::size_t j = 0; j < whole_columns; j += kLanes)
        transpose_block(from + k + j * b.column, b.column, to + k * kPanelColumns + j);
    }
  }
  for (std::size_t k = 0; k < panel.part.size; ++k) {
    std::size_t j = k < transposed ? whole_columns : 0;
    for (; j < panel.columns; ++j) to[k * kPanelColumns + j] = from[k * b.row + j * b.column];
    for (; j < padded(panel.columns); ++j) to[k * kPanelColumns + j] = 0;
  }
}

// Computes a tile of the result from this row and column on; `columns` count.
template <std::size_t R, std::size_t V>
ZOO_INLINE void tile(const MatrixProduct& p, const Panel& panel, std::size_t row, std::size_t column,
                     std::size_t columns) {
  const ColumnMask<V> mask(columns);
  const Matrix& a = panel.part.a;
  // Sums each part of the depth separately: in one long sum later terms would lose digits.
  const bool begins = panel.part.first == 0 && !p.adds;
  Lanes sums[R][V];
  begin_sums(mask, begins && p.bias != nullptr ? p.bias + column : nullptr, sums);
  add_products<FloatDot>({.rows = a.data + (row - panel.part.first_row) * a.row,
                          .row = a.row * sizeof(float),
                          .word = a.column * sizeof(float),
                          .columns = panel.data + (column - panel.first_column),
                          .depth = panel.row * sizeof(float),
                          .words = panel.part.size},
                         sums);
  const std::size_t at = row * p.result_row + column;
  if (const float* more = begins ? p.addend : p.result; more != nullptr)
    add_rows(mask, more + at, p.result_row, sums);
  write_rows(mask, p.result + at, p.result_row, sums);
}

// Replaces the results of rows that a tile has just left in the L1 cache: result = result * times; or
// activated = f(result), result = f'(result); or result = f(result).
void finish(const MatrixProduct& p, std::size_t first_row, std::size_t last_row, std::size_t column,
            std::size_t columns) {
  if (p.times == nullptr && p.pointwise == Pointwise::kNone) return;
  with_function(p.pointwise, [&](auto f) {
    for (std::size_t row = first_row; row < last_row; ++row) {
      const std::size_t begin = row * p.result_row + column;
      for_each_vector(columns, [&](std::size_t j, const auto& read, const auto& write) {
        const std::size_t at = begin + j;
        const Lanes x = read(p.result + at);
        if (p.times != nullptr) return write(p.result + at, x * read(p.times + at));
        write((p.activated != nullptr ? p.activated : p.result) + at, f.value(x));
        if (p.activated != nullptr) write(p.result + at, f.slope(x));
      });
    }
  });
}

// Computes R rows of the panel's product.
template <std::size_t R> void rows_of_panel(const MatrixProduct& p, const Panel& panel, std::size_t row) {
  for_vectors<kWidestTile<R>>(0, vectors_of(panel.columns), [&](auto width, std::size_t v) {
    tile<R, width()>(p, panel, row, panel.first_column + v * kLanes, panel.columns - v * kLanes);
  });
  if (panel.part.first + panel.part.size == p.depth)
    finish(p, row, row + R, panel.first_column, panel.columns);
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
      copy_panel(product.b, panel, memory.floats.get());
      panel.data = memory.floats.get();
      panel.row = kPanelColumns;
    }
    for_rows<kTallTile>(region.first_row, region.last_row,
                        [&](auto height, std::size_t row) { rows_of_panel<height()>(product, panel, row); });
  }
}

// For a transposed factor with distant columns: copies some rows at a time, so that they are contiguous.
void multiply_rows_that_lie_apart(const MatrixProduct& product, const Region& region, const DepthPart& part) {
  static thread_local const PanelMemory memory;
  for (std::size_t row = region.first_row; row < region.last_row; row += kBlockRows) {
    const std::size_t left = region.last_row - row, rows = left < kBlockRows ? left : kBlockRows;
    const float* from = part.a.data + row - part.first_row;
    for (std::size_t k = 0; k < part.size; ++k)
      std::memcpy(memory.floats.get() + k * kBlockRows, from + k * part.a.column, rows * sizeof(float));
    multiply_part(product, {row, row + rows, region.first_column, region.last_column},
                  {{memory.floats.get(), 1, kBlockRows}, row, part.first, part.size});
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

}  // namespace zoo::kernels::ZOO_KERNELS_FOR
