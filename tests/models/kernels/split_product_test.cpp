#include "models/kernels/training/split_product.h"

#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/where.h>

#include "tests/models/support.h"
#include "tests/support/catch.h"
#include "tests/support/instruction_sets.h"

namespace zoo::kernels {
namespace emulated_amx {
void multiply_split(const MatrixProduct& product, const Region& region);
}
namespace amx_bf16 {
void multiply_split(const MatrixProduct& product, const Region& region);
}
}  // namespace zoo::kernels

using namespace zoo::kernels;

namespace {

// Distance from a value in float64, relative to its norm.
double error_of_split(const at::Tensor& found, const at::Tensor& expected) {
  return ((found.to(at::kDouble) - expected).norm() / expected.norm()).item<double>();
}

struct SplitCase {
  std::int64_t rows, columns, depth;
};

// Around the 32 rows and columns of a pair of tiles, the 32 of a step, and the 128 rows, 1536 columns and 512
// of the depth that are packed at a time.
const std::vector<SplitCase> kSplitCases{{32, 32, 32},   {33, 31, 33},   {1, 17, 5},    {16, 48, 64},
                                         {130, 40, 100}, {20, 1550, 40}, {37, 50, 530}, {64, 64, 1056}};

}  // namespace

TEST_CASE("Products of float32 split for AMX are as exact as float32's own") {
  ZOO_NEEDS(cpu_runs(InstructionSet::kAvx2), "AVX2");
  const auto [rows, columns, depth] = GENERATE(from_range(kSplitCases));
  const bool left_turned = GENERATE(false, true), right_turned = GENERATE(false, true);
  CAPTURE(rows, columns, depth, left_turned, right_turned);
  // Numbers whose lowest bits count, of very different sizes.
  const at::Tensor a = at::randn({rows, depth}) * at::randn({rows, depth}).exp(),
                   b = at::randn({depth, columns}), bias = at::randn({columns}),
                   addend = at::randn({rows, columns});
  const at::Tensor left = left_turned ? a.t().contiguous() : a, right = right_turned ? b.t().contiguous() : b;
  const at::Tensor exact = at::matmul(a.to(at::kDouble), b.to(at::kDouble)),
                   expected = exact + bias.to(at::kDouble) + addend.to(at::kDouble);
  const auto m = static_cast<std::size_t>(rows), n = static_cast<std::size_t>(columns),
             k = static_cast<std::size_t>(depth);
  const at::Tensor result = at::full({rows, columns}, 7.0F), activated = at::empty({rows, columns});
  MatrixProduct product{.rows = m,
                        .columns = n,
                        .depth = k,
                        .a = left_turned ? Matrix{left.const_data_ptr<float>(), 1, m}
                                         : Matrix{left.const_data_ptr<float>(), k, 1},
                        .b = right_turned ? Matrix{right.const_data_ptr<float>(), 1, k}
                                          : Matrix{right.const_data_ptr<float>(), n, 1},
                        .result = result.mutable_data_ptr<float>(),
                        .result_row = n,
                        .bias = bias.const_data_ptr<float>(),
                        .addend = addend.const_data_ptr<float>()};
  // The float32 sum of 1,056 exact products is off by more than this; three bfloat16 without the products of
  // the middle parts would be off by 1e-5.
  constexpr double kExact = 3e-7;
  emulated_amx::multiply_split(product, {0, m, 0, n});
  CHECK(error_of_split(result, expected) < kExact);
  const at::Tensor whole = result.clone();

  // In regions, as threads compute them: the same bits.
  result.fill_(7);
  const std::size_t half = m / 2 / kSplitSide * kSplitSide;
  emulated_amx::multiply_split(product, {0, half, 0, n});
  emulated_amx::multiply_split(product, {half, m, 0, n});
  CHECK(result.equal(whole));

  if (cpu_runs(InstructionSet::kAmxBf16)) {
    result.fill_(7);
    amx_bf16::multiply_split(product, {0, m, 0, n});
    CHECK(result.equal(whole));
  }

  product.bias = product.addend = nullptr;
  product.adds = true;
  emulated_amx::multiply_split(product, {0, m, 0, n});
  CHECK(error_of_split(result, expected + exact) < kExact);

  product.adds = false;
  product.pointwise = Pointwise::kGelu;
  product.activated = activated.mutable_data_ptr<float>();
  emulated_amx::multiply_split(product, {0, m, 0, n});
  CHECK(error_of_split(activated, at::gelu(exact)) < 1e-6);
}

TEST_CASE("The upper tiles of a symmetric split product are those of the whole one") {
  ZOO_NEEDS(cpu_runs(InstructionSet::kAvx2), "AVX2");
  const std::int64_t size = GENERATE(50, 1600);  // columns are packed 1536 at a time
  const at::Tensor x = at::randn({size, 40}), whole = at::empty({size, size}),
                   upper = at::full({size, size}, 7.0F);
  const auto n = static_cast<std::size_t>(size);
  MatrixProduct product{.rows = n,
                        .columns = n,
                        .depth = 40,
                        .a = {x.const_data_ptr<float>(), 40, 1},
                        .b = {x.const_data_ptr<float>(), 1, 40},
                        .result = whole.mutable_data_ptr<float>(),
                        .result_row = n};
  emulated_amx::multiply_split(product, {0, n, 0, n});
  product.upper_only = true;
  product.result = upper.mutable_data_ptr<float>();
  emulated_amx::multiply_split(product, {0, n, 0, n});
  const auto tiles = at::arange(size).div(static_cast<std::int64_t>(kSplitSide), "floor");
  const at::Tensor is_upper = tiles.unsqueeze(1) <= tiles;
  CHECK(upper.equal(at::where(is_upper, whole, 7.0F)));
}
