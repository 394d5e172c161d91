#include "models/kernels/packed/packed_pairs.h"

#include <ATen/ops/empty.h>

#include "models/kernels/function_tensors.h"

namespace zoo::kernels {

at::Tensor empty_pairs(std::size_t count) {
  return at::empty({static_cast<std::int64_t>(count)}, at::kInt);
}

Pair* pairs(const at::Tensor& tensor) {
  return tensor.defined() ? reinterpret_cast<Pair*>(tensor.mutable_data_ptr<std::int32_t>()) : nullptr;
}

PackedPairs::PackedPairs(const at::Tensor& matrix, bool wants_rows, bool wants_panels)
    : PackedPairs(size_of(matrix, 0), size_of(matrix, 1), wants_rows, wants_panels) {}

PackedPairs::PackedPairs(std::size_t rows, std::size_t columns, bool wants_rows, bool wants_panels)
    : rows(rows), columns(columns) {
  if (wants_rows) by_rows = empty_pairs(pairs_by_rows(rows, columns));
  if (wants_panels) by_panels = empty_pairs(pairs_by_panels(rows, columns));
}

void PackedPairs::pack(const at::Tensor& matrix, const Team& team, float* sums) const {
  pack(matrix.const_data_ptr<float>(), team, sums);
}

void PackedPairs::pack(const float* matrix, const Team& team, float* sums) const {
  const Team::Part part = team.part_of(panels_of(columns));
  pack_pairs({matrix, rows, columns, pairs(by_rows), pairs(by_panels), sums}, part.first, part.last);
}

at::Tensor empty_transposed(const at::Tensor& weight) {
  return empty_pairs(pairs_by_panels(size_of(weight, 1), size_of(weight, 0)));
}

void pack_transposed(const at::Tensor& weight, const at::Tensor& to, const Team& team) {
  const Team::Part part = team.part_of(panels_of(size_of(weight, 0)));
  const PairPacking packing{.data = weight.const_data_ptr<float>(),
                            .rows = size_of(weight, 0),
                            .columns = size_of(weight, 1),
                            .by_panels = pairs(to)};
  pack_transposed_pairs(packing, part.first, part.last);
}

PairProduct product_into(const at::Tensor& result, const PairFactor& a, const at::Tensor& b,
                         std::size_t depth, const std::optional<at::Tensor>& bias,
                         const std::optional<at::Tensor>& addend) {
  return {.rows = size_of(result, 0),
          .columns = size_of(result, 1),
          .pairs = pairs_of(depth),
          .a = a,
          .b = pairs(b),
          .bias = bias ? bias->const_data_ptr<float>() : nullptr,
          .result = result.mutable_data_ptr<float>(),
          .addend = addend ? addend->const_data_ptr<float>() : nullptr};
}

void multiply(const PairProduct& product, const Team& team) {
  // Rows of a factor by panels are a fraction of a panel.
  const std::size_t unit = product.a.row == 1 ? kPairPanel / 4 : kPairTileRows;
  const std::size_t rows = 2 * pairs_of(product.rows), panels = panels_of(product.columns);
  if (rows / unit >= panels) {
    team.share(rows, unit, [&](Team::Part part) { multiply(product, {part.first, part.last, 0, panels}); });
  } else {
    team.share(panels, 1, [&](Team::Part part) { multiply(product, {0, rows, part.first, part.last}); });
  }
}

}  // namespace zoo::kernels
