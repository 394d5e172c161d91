#include "models/kernels/training/operand.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "models/kernels/cpu.h"
#include "models/kernels/training/bfloat16_product.h"
#include "models/kernels/training/function_tensors.h"
#include "models/kernels/training/matrix_product.h"
#include "models/kernels/training/split_product.h"

namespace zoo::kernels {
namespace {

const float* floats_of(const std::optional<at::Tensor>& tensor) {
  return tensor && tensor->defined() ? tensor->const_data_ptr<float>() : nullptr;
}

float* floats_in(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<float>() : nullptr;
}

at::Tensor empty_pairs(std::size_t count) { return at::empty({static_cast<std::int64_t>(count)}, at::kInt); }

Pair* pairs_in(const at::Tensor& tensor) {
  return tensor.defined() ? reinterpret_cast<Pair*>(tensor.mutable_data_ptr<std::int32_t>()) : nullptr;
}

Matrix view(const Operand& operand, bool transposed) {
  const at::Tensor& m = operand.matrix;
  const auto row = static_cast<std::size_t>(m.stride(0)), column = static_cast<std::size_t>(m.stride(1));
  const auto* data = m.const_data_ptr<float>();
  return transposed ? Matrix{data, column, row} : Matrix{data, row, column};
}

Operand without_matrix(std::size_t rows, std::size_t columns, const Roles& roles, bool mixed) {
  Operand operand{.mixed = mixed, .rows = rows, .columns = columns};
  if (!mixed) return operand;
  if (roles.left) operand.by_rows = empty_pairs(pairs_by_rows(rows, columns));
  if (roles.right) operand.by_panels = empty_pairs(pairs_by_panels(rows, columns));
  if (roles.right_transposed) operand.transposed_by_panels = empty_pairs(pairs_by_panels(columns, rows));
  return operand;
}

struct Shape {
  std::size_t rows, columns, depth;
};

Shape shape_of(const TensorProduct& p) {
  const bool left = p.transposed == Transposed::kLeft, right = p.transposed == Transposed::kRight;
  return {left ? p.a.columns : p.a.rows, right ? p.b.rows : p.b.columns, left ? p.a.rows : p.a.columns};
}

constexpr std::size_t kManyRows = 64 * kTileRows;  // of a thread

// Each part of the rows copies all columns of b, and each part of the columns all rows of a transposed a.
bool shares_rows(const MatrixProduct& p, std::size_t threads) {
  const auto most = [&](std::size_t count, std::size_t unit) {
    const std::size_t units = (count + unit - 1) / unit;
    return (units + threads - 1) / threads * unit;
  };
  // Copies and reads cost as much as this many rows or columns more.
  std::size_t of_b = p.b.column == 1 ? 8 : 24, of_a = p.a.row == 1 ? 8 : 2, unit = kTileRows;
  const bool split = is_split(p);
  if (split) {
    of_a = of_b = kSplitPacking;
    unit = kSplitSide;
  }
  const auto cost = [&](std::size_t rows, std::size_t columns) {
    return rows * columns + of_b * columns + of_a * rows;
  };
  // A thread that is late holds up the others for a part at most: with few panels that is long.
  const bool coarse = !split && p.columns < 4 * threads * kPanelColumns && p.rows >= kManyRows * threads;
  return coarse || cost(most(p.rows, unit), p.columns) <= cost(p.rows, most(p.columns, kPanelColumns));
}

// Rows of which a part has a multiple.
std::size_t unit_of_rows(const MatrixProduct& p, std::size_t threads) {
  if (!is_split(p)) return p.rows < kManyRows / 2 * threads ? kTileRows : 4 * kTileRows;
  // Each part packs all columns: with few rows, each thread has one.
  const std::size_t own = (p.rows + threads - 1) / threads;
  return own >= 1024 ? 4 * kSplitSide : (own + kSplitSide - 1) / kSplitSide * kSplitSide;
}

void multiply_floats(const TensorProduct& p, const at::Tensor& result, const Team& team) {
  const Shape shape = shape_of(p);
  MatrixProduct product{.rows = shape.rows,
                        .columns = shape.columns,
                        .depth = shape.depth,
                        .a = view(p.a, p.transposed == Transposed::kLeft),
                        .b = view(p.b, p.transposed == Transposed::kRight),
                        .result = floats_in(result),
                        .result_row = shape.columns,
                        .bias = floats_of(p.bias),
                        .adds = p.adds,
                        .addend = floats_of(p.addend),
                        .pointwise = p.pointwise,
                        .times = floats_of(p.times)};
  if (p.slope.defined()) {
    product.activated = product.result;
    product.result = floats_in(p.slope);
  }
  if (shares_rows(product, team.size())) {
    const std::size_t unit = unit_of_rows(product, team.size());
    team.share(shape.rows, unit, [&](Team::Part part) {
      multiply(product, Region{part.first, part.last, 0, shape.columns});
    });
  } else {
    team.share(shape.columns, kPanelColumns, [&](Team::Part part) {
      multiply(product, Region{0, shape.rows, part.first, part.last});
    });
  }
}

void multiply_pairs(const TensorProduct& p, const Operand& result, const Team& team) {
  const Shape shape = shape_of(p);
  const PairProduct product{
      .rows = shape.rows,
      .columns = shape.columns,
      .pairs = pairs_of(shape.depth),
      .a = p.transposed == Transposed::kLeft ? factor_by_panels(pairs_in(p.a.by_panels), p.a.rows)
                                             : factor_by_rows(pairs_in(p.a.by_rows), p.a.columns),
      .b = pairs_in(p.transposed == Transposed::kRight ? p.b.transposed_by_panels : p.b.by_panels),
      .bias = floats_of(p.bias),
      .result = floats_in(result.matrix),
      .adds = p.adds,
      .addend = floats_of(p.addend),
      .by_rows = pairs_in(result.by_rows),
      .by_panels = pairs_in(result.by_panels),
      .pointwise = p.pointwise,
      .slope = pairs_in(p.slope),
      .times = pairs_in(p.times)};
  // With a factor by panels, or AMX, a part has a fraction of a panel's rows.
  const bool of_panel = product.a.row == 1 || instruction_set() == InstructionSet::kAmxBf16;
  const std::size_t unit = of_panel ? kPairPanel / 4 : kPairTileRows;
  const std::size_t rows = 2 * pairs_of(product.rows), panels = panels_of(product.columns);
  if (rows / unit >= panels) {
    team.share(rows, unit, [&](Team::Part part) { multiply(product, {part.first, part.last, 0, panels}); });
  } else {
    team.share(panels, 1, [&](Team::Part part) { multiply(product, {0, rows, part.first, part.last}); });
  }
}

}  // namespace

Operand Operand::of(const at::Tensor& matrix, const Roles& roles, bool mixed) {
  Operand operand = without_matrix(size_of(matrix, 0), size_of(matrix, 1), roles, mixed);
  // Packing reads contiguous rows; products in float32 take any strides.
  operand.matrix = mixed ? matrix.contiguous() : matrix;
  return operand;
}

Operand Operand::empty(std::size_t rows, std::size_t columns, const Roles& roles, bool mixed) {
  Operand operand = without_matrix(rows, columns, roles, mixed);
  if (!mixed)
    operand.matrix = at::empty({static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)});
  return operand;
}

Operand Operand::from_kept(const at::Tensor& kept, std::size_t rows, std::size_t columns, bool mixed) {
  Operand operand = without_matrix(rows, columns, {}, mixed);
  (mixed ? operand.by_panels : operand.matrix) = kept;
  return operand;
}

at::Tensor Operand::empty_slope() const {
  return mixed ? empty_pairs(pairs_by_rows(rows, columns)) : at::empty_like(matrix);
}

void Operand::pack(const Team& team, const at::Tensor& sums) const {
  if (!mixed) return;
  PairPacking packing{.data = floats_of(matrix), .rows = rows, .columns = columns};
  if (by_rows.defined() || by_panels.defined() || sums.defined()) {
    const Team::Part part = team.part_of(panels_of(columns));
    packing.by_rows = pairs_in(by_rows);
    packing.by_panels = pairs_in(by_panels);
    packing.sums = floats_in(sums);
    pack_pairs(packing, part.first, part.last);
  }
  if (transposed_by_panels.defined()) {
    const Team::Part part = team.part_of(panels_of(rows));
    packing.by_panels = pairs_in(transposed_by_panels);
    pack_transposed_pairs(packing, part.first, part.last);
  }
}

void multiply(const TensorProduct& p, const at::Tensor& result, const Team& team) {
  multiply(p, Operand{.matrix = result}, team);
}

void multiply(const TensorProduct& p, const Operand& result, const Team& team) {
  if (p.a.mixed) multiply_pairs(p, result, team);
  else multiply_floats(p, result.matrix, team);
}

void sum_rows(const Operand& operand, const at::Tensor& sums, const Team& team) {
  const Team::Part part = team.part_of(panels_of(operand.columns));
  sum_pairs(pairs_in(operand.by_panels), pairs_of(operand.rows), floats_in(sums), operand.columns, part.first,
            part.last);
}

void run_products(std::size_t multiplications, c10::function_ref<void(const Team&)> work) {
  constexpr std::size_t kWorthWaking = 100'000;
  if (multiplications >= kWorthWaking) return run_team(work);
  Team::Shared shared;
  work(Team(0, 1, shared));
}

}  // namespace zoo::kernels
