#include "models/layers/norm.h"

#include <ATen/Parallel.h>

#include "models/kernels/training/row_functions.h"
#include "tests/models/double_reference.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"
#include "tests/support/instruction_sets.h"

using namespace zoo;
using zoo::test::compare;
using zoo::test::largest_difference;
using zoo::test::leaf;

namespace {

struct Size {
  std::int64_t rows, columns;
};

// Below and above a vector of 16, the 16 rows whose sums are taken at a time and the 64 such blocks.
const std::vector<Size> kSizes = {{1, 3}, {1, 16}, {3, 5}, {17, 33}, {40, 64}, {100, 100}, {1100, 18}};

// A mean far from zero: its square must not drown the variance.
at::Tensor apart(const at::Tensor& x) { return x * 2.0 + 7.0; }

at::Tensor reference(const std::vector<at::Tensor>& t, bool centred) {
  const at::Tensor shifted = centred ? t[0] - t[0].mean(-1, true) : t[0];
  const at::Tensor normed = shifted * (shifted.square().mean(-1, true) + 1e-5).rsqrt() * t[1];
  return t.size() > 2 ? normed + t[2] : normed;
}

}  // namespace

TEST_CASE("LayerNorm of (1, 2, 3, 6) by hand") {
  Norm norm(NormKind::kLayerNorm, 4, /*eps=*/0.5, /*with_bias=*/true);
  const at::NoGradGuard no_grad;
  norm->weight.copy_(at::tensor({1.0, 2.0, 1.0, -1.0}));
  norm->bias.copy_(at::tensor({0.0, 0.0, 10.0, 1.0}));
  // mean 3, variance (4 + 1 + 0 + 9) / 4 = 3.5, and sqrt(3.5 + 0.5) = 2
  const at::Tensor expected = at::tensor({-1.0, -1.0, 10.0, -0.5});
  CHECK(largest_difference(norm(at::tensor({1.0F, 2.0F, 3.0F, 6.0F})), expected) < 1e-6);
}

TEST_CASE("RMSNorm of (1, 1, 3, 5) by hand: no mean is taken off") {
  Norm norm(NormKind::kRmsNorm, 4, /*eps=*/7.0, /*with_bias=*/true);
  CHECK(!norm->bias.defined());  // RMSNorm has none, whatever is asked for
  const at::NoGradGuard no_grad;
  norm->weight.copy_(at::tensor({1.0, 2.0, 1.0, -1.0}));
  // mean of squares (1 + 1 + 9 + 25) / 4 = 9, and sqrt(9 + 7) = 4
  const at::Tensor expected = at::tensor({0.25, 0.5, 0.75, -1.25});
  CHECK(largest_difference(norm(at::tensor({1.0, 1.0, 3.0, 5.0})), expected) < 1e-6);
}

TEST_CASE("RMSNorm of bfloat16 is computed in float32 and given back in bfloat16") {
  Norm norm(NormKind::kRmsNorm, 256, 1e-6, false);
  at::manual_seed(1);
  const at::Tensor x = (at::randn({4, 256}) * 30).to(at::kBFloat16);
  const at::Tensor wide = x.to(at::kDouble);
  const at::Tensor expected = wide / (wide.square().mean(-1, true) + 1e-6).sqrt();
  norm->to(at::kBFloat16);
  const at::Tensor y = norm(x);
  CHECK(y.scalar_type() == at::kBFloat16);
  // Half a step of bfloat16 (8 bits of significand) at the value itself, 2^-8, and no more.
  CHECK(((y.to(at::kDouble) - expected).abs() / expected.abs().clamp_min(1e-3)).max().item<double>() <
        1.0 / 256);
}

TEST_CASE("a norm is over the last dimension, and starts as one and zero") {
  Norm norm(NormKind::kLayerNorm, 5, 1e-5, true);
  CHECK(at::equal(norm->weight, at::ones(5)));
  CHECK(at::equal(norm->bias, at::zeros(5)));
  at::manual_seed(2);
  const at::Tensor x = at::randn({2, 3, 5}), y = norm(x);
  CHECK(y.mean(-1).abs().max().item<double>() < 1e-6);
  CHECK(largest_difference(y.var(-1, /*unbiased=*/false), at::ones({2, 3})) < 1e-3);
  CHECK(!Norm(NormKind::kLayerNorm, 5, 1e-5, false)->bias.defined());
  const at::NoGradGuard no_grad;
  norm->weight.fill_(3.0);
  norm->bias.fill_(3.0);
  norm->reset();
  CHECK(at::equal(norm->weight, at::ones(5)));
  CHECK(at::equal(norm->bias, at::zeros(5)));
}

TEST_CASE("The CPU's norms equal the definition in double precision, gradients too") {
  ZOO_NEEDS_TRAINING_KERNELS;
  at::manual_seed(3);
  for (const Size& size : kSizes) {
    for (const bool centred : {true, false}) {
      INFO(size.rows << " rows of " << size.columns << (centred ? ", centred" : ""));
      const kernels::NormOptions options{centred, 1e-5};
      compare(
          {apart(leaf({size.rows, size.columns})).detach().requires_grad_(), leaf({size.columns})},
          [&](const auto& t) { return kernels::norm(t[0], t[1], {}, options); },
          [&](const auto& t) { return reference(t, centred); });
      compare(
          {leaf({size.rows, size.columns}), leaf({size.columns}), leaf({size.columns})},
          [&](const auto& t) { return kernels::norm(t[0], t[1], t[2], options); },
          [&](const auto& t) { return reference(t, centred); });
    }
  }
}

TEST_CASE("The gradients of a residual and of its norm are added") {
  ZOO_NEEDS_TRAINING_KERNELS;
  at::manual_seed(4);
  const kernels::NormOptions options{true, 1e-5};
  const auto inputs = [] { return std::vector<at::Tensor>{leaf({4, 7, 20}), leaf({20}), leaf({20})}; };
  compare(
      inputs(),
      [&](const auto& t) {
        const auto [residual, normed] = kernels::normed_residual(t[0], t[1], t[2], options);
        return residual * 3.0 + normed.square();
      },
      [&](const auto& t) { return t[0] * 3.0 + reference(t, true).square(); });
  compare(
      inputs(),
      [&](const auto& t) {
        // Strides of its own come back to both.
        const auto [residual, normed] = kernels::normed_residual(t[0].transpose(0, 1), t[1], t[2], options);
        return (residual + normed).transpose(0, 2);
      },
      [&](const auto& t) {
        return (t[0] + reference(t, true)).permute({2, 0, 1});
      });
  const std::vector<at::Tensor> t = inputs();
  const auto [residual, normed] = kernels::normed_residual(t[0], t[1], t[2], options);
  CHECK(residual.equal(t[0]));
  CHECK(torch::autograd::grad({residual.sum()}, {t[0]})[0].equal(at::ones_like(t[0])));
}

TEST_CASE("The CPU's norms give the same bits on one thread as on three") {
  ZOO_NEEDS_TRAINING_KERNELS;
  at::manual_seed(5);
  const at::Tensor x = leaf({500, 300}), weight = leaf({300}), upstream = at::randn({500, 300});
  const int before = at::get_num_threads();
  const auto gradients = [&](int threads) {
    at::set_num_threads(threads);
    return torch::autograd::grad({kernels::norm(x, weight, {}, {true, 1e-5})}, {x, weight}, {upstream});
  };
  const auto alone = gradients(1), together = gradients(3);
  at::set_num_threads(before);
  CHECK(alone[0].equal(together[0]));
  CHECK(alone[1].equal(together[1]));
}
