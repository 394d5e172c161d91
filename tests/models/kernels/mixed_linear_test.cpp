#include <cmath>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <torch/csrc/autograd/autograd.h>

#include "models/kernels/training/linear.h"
#include "models/layers/linear.h"
#include "tests/models/kernels/autocast.h"
#include "tests/support/catch.h"
#include "tests/support/instruction_sets.h"

using zoo::kernels::Pointwise;

namespace {

struct Case {
  std::int64_t rows, in, out;
};

// Odd sizes, below and above a tile of 6 x 64, and the 2048 that are summed at a time.
const std::vector<Case> kCases = {{16, 2, 3},     {17, 3, 15},   {19, 31, 33},   {24, 64, 64},
                                  {23, 65, 129},  {97, 130, 48}, {17, 2100, 80}, {2051, 20, 17},
                                  {100, 70, 700}, {64, 128, 384}};

at::Tensor scaled_leaf(at::IntArrayRef sizes) {
  return (at::randn(sizes) / std::sqrt(static_cast<double>(sizes.back()))).requires_grad_();
}

double product_error(const at::Tensor& actual, const at::Tensor& expected) {
  REQUIRE(actual.scalar_type() == at::kFloat);
  REQUIRE(actual.sizes() == expected.sizes());
  return ((actual.to(at::kDouble) - expected).norm() / expected.norm()).item<double>();
}

at::Tensor mixed_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                        const at::Tensor& addend = {}) {
  const Autocast autocast(at::kBFloat16);
  return zoo::kernels::linear(x, weight, bias, addend);
}

at::Tensor mixed_feed_forward(const at::Tensor& x, const zoo::kernels::FeedForwardWeights& weights,
                              Pointwise f, const at::Tensor& addend = {}) {
  const Autocast autocast(at::kBFloat16);
  return zoo::kernels::feed_forward(x, weights, f, addend);
}

}  // namespace

TEST_CASE("What is added to a product in bfloat16 is not rounded, and gets the whole gradient") {
  ZOO_NEEDS_BFLOAT16_PRODUCTS;
  at::manual_seed(5);
  for (const Case& c : kCases) {
    INFO(c.rows << " x " << c.in << " to " << c.out);
    const at::Tensor x = scaled_leaf({c.rows, c.in}), up = scaled_leaf({c.out, c.in}),
                     down = scaled_leaf({c.in, c.out});
    const at::Tensor wide = scaled_leaf({c.rows, c.out}), narrow = scaled_leaf({c.rows, c.in});
    const at::Tensor projected = mixed_linear(x, up, {}, wide);
    const at::Tensor expected = at::linear(seen(x), seen(up)) + wide.detach();
    CHECK(product_error(projected, expected) < 2e-6);
    const zoo::kernels::FeedForwardWeights weights{up, {}, down, {}};
    const at::Tensor through = mixed_feed_forward(x, weights, Pointwise::kRelu, narrow);
    const at::Tensor alone = mixed_feed_forward(x, weights, Pointwise::kRelu);
    CHECK(product_error(through, (alone + narrow).detach().to(at::kDouble)) < 2e-6);
    const at::Tensor upstream = at::randn(projected.sizes()), other = at::randn(through.sizes());
    CHECK(torch::autograd::grad({projected}, {wide}, {upstream})[0].equal(upstream));
    CHECK(torch::autograd::grad({through}, {narrow}, {other})[0].equal(other));
  }
}

TEST_CASE("A linear layer in bfloat16 rounds its factors and nothing else") {
  ZOO_NEEDS_BFLOAT16_PRODUCTS;
  at::manual_seed(1);
  for (const Case& c : kCases) {
    for (const bool biased : {true, false}) {
      INFO(c.rows << " x " << c.in << " to " << c.out << (biased ? " with a bias" : ""));
      const at::Tensor x = scaled_leaf({c.rows, c.in}), weight = scaled_leaf({c.out, c.in}),
                       bias = biased ? scaled_leaf({c.out}) : at::Tensor();
      const at::Tensor actual = mixed_linear(x, weight, bias);
      at::Tensor expected = at::linear(seen(x), seen(weight));
      if (biased) expected = expected + bias.detach();
      CHECK(product_error(actual, expected) < 2e-6);

      const at::Tensor upstream = at::randn(actual.sizes());
      const auto gradients = torch::autograd::grad(
          {actual}, biased ? std::vector<at::Tensor>{x, weight, bias} : std::vector<at::Tensor>{x, weight},
          {upstream});
      CHECK(product_error(gradients[0], seen(upstream).matmul(seen(weight))) < 2e-6);
      CHECK(product_error(gradients[1], seen(upstream).t().matmul(seen(x))) < 2e-6);
      if (biased) CHECK(product_error(gradients[2], upstream.to(at::kDouble).sum(0)) < 2e-6);
    }
  }
}

TEST_CASE("A feed-forward network in bfloat16 rounds what its products see") {
  ZOO_NEEDS_BFLOAT16_PRODUCTS;
  at::manual_seed(2);
  for (const Pointwise f : {Pointwise::kRelu, Pointwise::kGelu}) {
    const auto activation = [&](const at::Tensor& x) {
      return f == Pointwise::kRelu ? at::relu(x) : at::gelu(x);
    };
    for (const Case& c : kCases) {
      INFO("activation " << static_cast<int>(f) << ", " << c.rows << " x " << c.in << " through " << c.out);
      const at::Tensor x = scaled_leaf({c.rows, c.in}), up = scaled_leaf({c.out, c.in}),
                       up_bias = scaled_leaf({c.out}), down = scaled_leaf({c.in, c.out}),
                       down_bias = scaled_leaf({c.in});
      const at::Tensor actual = mixed_feed_forward(x, {up, up_bias, down, down_bias}, f);
      const at::Tensor inner = at::linear(seen(x), seen(up)) + up_bias.detach();
      const at::Tensor activated = seen(activation(inner));
      // A sum that lies at the border of two roundings may fall to either side.
      CHECK(product_error(actual, at::linear(activated, seen(down)) + down_bias.detach()) < 1e-4);

      const at::Tensor upstream = at::randn(actual.sizes());
      const auto gradients = torch::autograd::grad({actual}, {x, up, up_bias, down, down_bias}, {upstream});
      const at::Tensor inner_leaf = inner.detach().requires_grad_();
      const at::Tensor slope = seen(torch::autograd::grad({activation(inner_leaf).sum()}, {inner_leaf})[0]);
      const at::Tensor inner_gradient = seen(seen(upstream).matmul(seen(down)) * slope);
      CHECK(product_error(gradients[0], inner_gradient.matmul(seen(up))) < 1e-4);
      CHECK(product_error(gradients[1], inner_gradient.t().matmul(seen(x))) < 1e-4);
      CHECK(product_error(gradients[2], inner_gradient.sum(0)) < 1e-4);
      CHECK(product_error(gradients[3], seen(upstream).t().matmul(activated)) < 1e-4);
      CHECK(product_error(gradients[4], upstream.to(at::kDouble).sum(0)) < 2e-6);
    }
  }
}

TEST_CASE("A linear layer in bfloat16 takes weights of any strides") {
  ZOO_NEEDS_BFLOAT16_PRODUCTS;
  at::manual_seed(4);
  const at::Tensor x = scaled_leaf({17, 20}), weight = scaled_leaf({20, 11}), up = scaled_leaf({20, 11}),
                   down = scaled_leaf({11, 20});
  const at::Tensor projected = mixed_linear(x, weight.t(), {});
  CHECK(product_error(projected, seen(x).matmul(seen(weight))) < 2e-6);
  const at::Tensor upstream = at::randn(projected.sizes());
  CHECK(product_error(torch::autograd::grad({projected}, {weight}, {upstream})[0],
                      seen(x).t().matmul(seen(upstream))) < 2e-6);
  const at::Tensor through = mixed_feed_forward(x, {up.t(), {}, down.t(), {}}, Pointwise::kRelu);
  const at::Tensor activated = seen(at::relu(seen(x).matmul(seen(up))));
  CHECK(product_error(through, activated.matmul(seen(down))) < 1e-4);
}

TEST_CASE("Under autocast to bfloat16 a layer gives float32 of any shape, with and without gradients") {
  ZOO_NEEDS_BFLOAT16_PRODUCTS;
  at::manual_seed(3);
  zoo::Linear layer(20, 11);
  const at::Tensor x = at::randn({5, 7, 20});
  const at::Tensor expected = at::linear(seen(x), seen(layer->weight)) + layer->bias.detach();
  const Autocast autocast(at::kBFloat16);
  CHECK(product_error(layer(x), expected) < 2e-6);
  CHECK(product_error(layer(x.to(at::kBFloat16)), expected) < 2e-6);
  const at::NoGradGuard no_grad;
  CHECK(product_error(layer(x), expected) < 2e-6);
}
