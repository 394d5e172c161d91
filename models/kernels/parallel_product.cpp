#include "models/kernels/parallel_product.h"

#include <algorithm>

#include "models/kernels/parallel.h"

namespace zoo::kernels {

Matrix view(const at::Tensor& matrix) {
  return {matrix.const_data_ptr<float>(), static_cast<std::size_t>(matrix.stride(0)),
          static_cast<std::size_t>(matrix.stride(1))};
}

void multiply_in_parallel(const MatrixProduct& product) {
  const auto units_of = [](std::size_t size, std::size_t unit) {
    return static_cast<std::int64_t>((size + unit - 1) / unit);
  };
  const std::int64_t row_units = units_of(product.rows, kTileRows);
  const std::int64_t column_units = units_of(product.columns, kPanelColumns);
  const bool by_rows = row_units >= column_units;
  const std::int64_t units = by_rows ? row_units : column_units;
  // 100,000 multiplications are worth waking a thread.
  const auto work = static_cast<std::int64_t>(product.rows * product.columns * product.depth) / units;
  const std::int64_t grain = std::max<std::int64_t>(1, 100'000 / std::max<std::int64_t>(work, 1));
  parallel_for(0, units, grain, [&](std::int64_t first, std::int64_t last) {
    Region region{0, product.rows, 0, product.columns};
    const auto begin = static_cast<std::size_t>(first), end = static_cast<std::size_t>(last);
    if (by_rows) {
      region.first_row = begin * kTileRows;
      region.last_row = std::min(end * kTileRows, product.rows);
    } else {
      region.first_column = begin * kPanelColumns;
      region.last_column = std::min(end * kPanelColumns, product.columns);
    }
    multiply(product, region);
  });
}

}  // namespace zoo::kernels
