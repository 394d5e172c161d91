#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <torch/csrc/autograd/autograd.h>

#include "models/kernels/training/rows.h"
#include "models/ops/linear.h"
#include "tests/support/catch.h"
#include "tests/support/instruction_sets.h"

TEST_CASE("Dropout's words are Philox4x32-10's") {
  ZOO_NEEDS_TRAINING_KERNELS;
  // Random123's known answers for the counter 0 and the key 0: 6627e8d5 e169c58d bc57ac4c 9b00dbd8. They
  // decide the elements 0, 16, 32 and 48.
  const std::uint32_t words[] = {0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U};
  const std::vector<float> x(64, 1.0F);
  for (std::size_t i = 0; i < 4; ++i) {
    for (const bool keeps : {true, false}) {
      std::vector<float> to(64);
      zoo::kernels::apply({.seed = 0, .threshold = words[i] + (keeps ? 0U : 1U), .scale = 3}, x.data(),
                          to.data(), 64, 0, 1);
      CHECK(to[16 * i] == (keeps ? 3.0F : 0.0F));
    }
  }
}

TEST_CASE("Dropout keeps its share, divides by it, and drops the gradient at the same places") {
  at::manual_seed(1);
  for (const double rate : {0.1, 0.5, 0.9}) {
    const at::Tensor x = at::ones({333, 301}).requires_grad_();
    const at::Tensor y = zoo::ops::dropout(x, rate);
    const at::Tensor kept = y.ne(0);
    const auto n = static_cast<double>(x.numel());
    // Five standard deviations of a binomial count.
    CHECK(kept.sum().item<double>() / n == Approx(1 - rate).margin(5 * std::sqrt(rate * (1 - rate) / n)));
    CHECK(y.masked_select(kept).sub(1.0 / (1.0 - rate)).abs().max().item<double>() < 1e-6);
    const at::Tensor upstream = at::randn(x.sizes());
    const at::Tensor gradient = torch::autograd::grad({y}, {x}, {upstream})[0];
    CHECK(gradient.sub(upstream * y.detach()).abs().max().item<double>() < 1e-5);
    // Neighbours are dropped independently of one another, in a row and between rows.
    const at::Tensor k = kept.to(at::kDouble) - (1 - rate);
    for (const std::int64_t dim : {0, 1}) {
      const std::int64_t size = x.size(dim);
      const double together = (k.slice(dim, 1) * k.slice(dim, 0, size - 1)).mean().item<double>();
      CHECK(std::abs(together) < 5 * rate * (1 - rate) / std::sqrt(n));
    }
  }
}

TEST_CASE("Dropout continues from the generator's state, so that each call draws other masks") {
  at::manual_seed(2);
  const at::Tensor x = at::ones({100, 70});
  const at::Tensor first = zoo::ops::dropout(x, 0.3), second = zoo::ops::dropout(x, 0.3);
  CHECK_FALSE(first.equal(second));
  at::manual_seed(2);
  CHECK(first.equal(zoo::ops::dropout(x, 0.3)));
  CHECK(second.equal(zoo::ops::dropout(x, 0.3)));
}

TEST_CASE("Dropout takes tensors of any strides and both ends of its range") {
  at::manual_seed(3);
  const at::Tensor x = at::ones({40, 30}).t();
  const at::Tensor y = zoo::ops::dropout(x, 0.5);
  REQUIRE(y.sizes() == x.sizes());
  CHECK(y.eq(0).logical_or(y.eq(2)).all().item<bool>());
  CHECK(zoo::ops::dropout(x, 0).equal(x));
  CHECK(zoo::ops::dropout(x, 1).eq(0).all().item<bool>());
}
