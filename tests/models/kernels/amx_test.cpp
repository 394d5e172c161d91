#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>

#include "models/kernels/attention/short_attention.h"
#include "tests/models/kernels/autocast.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"
#include "tests/support/instruction_sets.h"

namespace zoo::emulated_kernels {
using kernels::Pointwise;
}
#define kernels emulated_kernels
#include "models/kernels/attention/head_attention.h"
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
  // Around 16 rows, 16 pairs, 64 columns, the 512 rows of 128 pairs that are turned and the 1024 pairs that
  // are summed at a time.
  for (const auto& [rows, depth, columns] :
       {Case{16, 32, 64}, Case{1, 1, 1}, Case{17, 33, 65}, Case{15, 31, 63}, Case{34, 300, 16},
        Case{66, 254, 130}, Case{5, 2100, 40}, Case{80, 64, 17}, Case{530, 270, 70}}) {
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

TEST_CASE("Tiles of AMX attend as the program's kernels of mixed precision do") {
  ZOO_NEEDS_BFLOAT16_PRODUCTS;
  const std::int64_t length = GENERATE(1, 15, 16, 17, 100, 256), head_dim = GENERATE(8, 40, 64, 80);
  CAPTURE(length, head_dim);
  const at::Tensor qkv = at::randn({1, length, 3 * head_dim}).requires_grad_(),
                   out = at::randn({1, length, head_dim}), found = at::empty_like(out),
                   found_gradient = at::empty_like(qkv.detach());
  at::Tensor output;
  {
    const Autocast autocast(at::kBFloat16);
    output = zoo::kernels::causal_self_attention(qkv, 1);
  }
  output.backward(out);
  const HeadAttention& kernel = mixed_attention();
  const auto size = static_cast<std::size_t>(head_dim), positions = static_cast<std::size_t>(length);
  const at::Tensor weights = at::empty({static_cast<std::int64_t>(kernel.weights_size(positions))}, at::kInt),
                   scratch =
                       at::empty({static_cast<std::int64_t>(kernel.scratch_size(positions, size))}, at::kInt);
  const auto words = [](const at::Tensor& of) { return static_cast<Word*>(of.mutable_data_ptr()); };
  const float* q = qkv.const_data_ptr<float>();
  float* gradient = found_gradient.mutable_data_ptr<float>();
  const Head head{q, q + size, q + 2 * size, 3 * size, positions, size};
  kernel.forward(head, words(weights), found.mutable_data_ptr<float>(), size, words(scratch));
  kernel.backward(head, words(weights), out.const_data_ptr<float>(), size,
                  {gradient, gradient + size, gradient + 2 * size}, words(scratch));
  // A weight at the border of two roundings may fall to either side.
  CHECK(zoo::test::relative_error(found, output.detach()) < 2e-4);
  CHECK(zoo::test::relative_error(found_gradient, qkv.grad()) < 2e-4);
}
