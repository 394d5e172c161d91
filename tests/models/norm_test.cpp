#include "models/layers/norm.h"

#include <catch2/catch.hpp>

#include "tests/models/support.h"

using namespace zoo;
using zoo::test::largest_difference;

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
