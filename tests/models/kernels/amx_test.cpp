#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>

#include "tests/support/catch.h"
#include "tests/support/instruction_sets.h"

#define kernels emulated_kernels
#include "models/kernels/training/bfloat16_product.h"
#undef kernels

using namespace zoo::emulated_kernels;

namespace {

// A matrix as the left and the right factor of a product.
struct Packed {
  std::vector<Pair> by_rows, by_panels;

  explicit Packed(const at::Tensor& matrix) {
    const auto rows = static_cast<std::size_t>(matrix.size(0)),
               columns = static_cast<std::size_t>(matrix.size(1));
    by_rows.resize(pairs_by_rows(rows, columns));
    by_panels.resize(pairs_by_panels(rows, columns));
    pack_pairs({.data = matrix.const_data_ptr<float>(),
                .rows = rows,
                .columns = columns,
                .by_rows = by_rows.data(),
                .by_panels = by_panels.data()},
               0, panels_of(columns));
  }
};

at::Tensor rounded(const at::Tensor& x) { return x.to(at::kBFloat16).to(at::kDouble); }

}  // namespace

TEST_CASE("Tiles of AMX multiply matrices of every size, by rows and by panels") {
  ZOO_NEEDS(zoo::kernels::cpu_runs(zoo::kernels::InstructionSet::kAvx512Bf16), "AVX-512 BF16");
  struct Case {
    std::int64_t rows, depth, columns;
  };
  // Around 16 rows, 16 pairs, 64 columns, the 128 pairs that are turned and the 1024 that are summed at a
  // time.
  for (const auto& [rows, depth, columns] :
       {Case{16, 32, 64}, Case{1, 1, 1}, Case{17, 33, 65}, Case{15, 31, 63}, Case{34, 300, 16},
        Case{66, 254, 130}, Case{5, 2100, 40}, Case{80, 64, 17}}) {
    INFO(rows << " x " << depth << " x " << columns);
    const at::Tensor a = at::randn({rows, depth}), b = at::randn({depth, columns}),
                     bias = at::randn({columns}), addend = at::randn({rows, columns}),
                     turned = a.t().contiguous();
    const at::Tensor expected = at::matmul(rounded(a), rounded(b)) + bias + addend;
    const Packed left(a), left_turned(turned), right(b);
    for (const bool by_panels : {false, true}) {
      INFO((by_panels ? "by panels" : "by rows"));
      const auto m = static_cast<std::size_t>(rows), n = static_cast<std::size_t>(columns),
                 k = static_cast<std::size_t>(depth);
      const at::Tensor result = at::empty({rows, columns});
      multiply({.rows = m,
                .columns = n,
                .pairs = pairs_of(k),
                .a = by_panels ? factor_by_panels(left_turned.by_panels.data(), k)
                               : factor_by_rows(left.by_rows.data(), k),
                .b = right.by_panels.data(),
                .bias = bias.const_data_ptr<float>(),
                .result = result.mutable_data_ptr<float>(),
                .addend = addend.const_data_ptr<float>()},
               {0, 2 * pairs_of(m), 0, panels_of(n)});
      CHECK((result.to(at::kDouble) - expected).norm().item<double>() <
            1e-6 * expected.norm().item<double>());
    }
  }
}
