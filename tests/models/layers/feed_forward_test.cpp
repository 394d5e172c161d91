#include "models/layers/feed_forward.h"

#include <cmath>

#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;
using zoo::test::largest_difference;

namespace {

double relu(double x) { return x > 0 ? x : 0; }
// Hendrycks and Gimpel (2016): x Phi(x), and its approximation by tanh.
double gelu(double x) { return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0))); }
double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double silu(double x) { return x / (1 + std::exp(-x)); }

double at_point(double x, Activation activation) {
  return activate(at::tensor({x}, at::kDouble), activation).item<double>();
}

}  // namespace

TEST_CASE("each activation has the values of its published formula") {
  for (const double x : {-4.0, -1.0, -0.25, 0.0, 0.5, 1.0, 3.0}) {
    CAPTURE(x);
    CHECK(at_point(x, Activation::kRelu) == relu(x));
    CHECK(at_point(x, Activation::kGelu) == Approx(gelu(x)).margin(1e-12));
    CHECK(at_point(x, Activation::kGeluTanh) == Approx(gelu_tanh(x)).margin(1e-12));
    CHECK(at_point(x, Activation::kSilu) == Approx(silu(x)).margin(1e-12));
    CHECK(at_point(x, Activation::kRelu2) == relu(x) * relu(x));
    CHECK(at_point(x, Activation::kTanh) == Approx(std::tanh(x)).margin(1e-12));
  }
  // Digits from tables, so that the formulas above are not their own witness.
  CHECK(at_point(1.0, Activation::kGelu) == Approx(0.8413447461).margin(1e-9));
  CHECK(at_point(1.0, Activation::kGeluTanh) == Approx(0.8411919906).margin(1e-9));
  CHECK(at_point(1.0, Activation::kSilu) == Approx(0.7310585786).margin(1e-9));
}

TEST_CASE("a gated unit activates the first half and multiplies by the second") {
  const at::Tensor x = at::tensor({-1.0, 2.0, 3.0, -5.0}, at::kDouble).view({1, 4});
  const auto gated = [&](Activation activation) { return activate(x, activation); };
  const auto expected = [](double (*gate)(double)) {
    return at::tensor({gate(-1.0) * 3.0, gate(2.0) * -5.0}, at::kDouble).view({1, 2});
  };
  CHECK(largest_difference(gated(Activation::kSwiGlu), expected(silu)) < 1e-12);
  CHECK(largest_difference(gated(Activation::kGeGlu), expected(gelu)) < 1e-12);
  CHECK(largest_difference(gated(Activation::kReGlu), expected(relu)) < 1e-12);
  CHECK(largest_difference(gated(Activation::kGeGluTanh), expected(gelu_tanh)) < 1e-12);
}

TEST_CASE("the feed-forward network is down(activation(up(x)))") {
  TransformerConfig config;
  config.hidden_size = 2;
  config.intermediate_size = 3;
  config.activation = Activation::kRelu;
  FeedForward network(config);
  const at::NoGradGuard no_grad;
  network->up->weight.copy_(at::tensor({1.0, 0.0, 0.0, 1.0, -1.0, -1.0}).view({3, 2}));
  network->up->bias.copy_(at::tensor({0.5, -1.0, 0.0}));
  network->down->weight.copy_(at::tensor({1.0, 2.0, 4.0, 0.0, 1.0, -1.0}).view({2, 3}));
  network->down->bias.copy_(at::tensor({10.0, 20.0}));
  // up(1, 3) = (1.5, 2, -4), relu = (1.5, 2, 0); down = (1.5 + 4 + 10, 2 + 20)
  const at::Tensor y = network(at::tensor({1.0F, 3.0F}).view({1, 1, 2}));
  CHECK(largest_difference(y, at::tensor({15.5, 22.0}).view({1, 1, 2})) < 1e-6);
}

TEST_CASE("the width of a feed-forward network is four times C unless given, and twice that before a gate") {
  TransformerConfig config;
  config.hidden_size = 6;
  CHECK(FeedForward(config)->up->weight.sizes() == at::IntArrayRef({24, 6}));
  CHECK(FeedForward(config)->down->weight.sizes() == at::IntArrayRef({6, 24}));
  config.intermediate_size = 10;
  config.activation = GENERATE(Activation::kSwiGlu, Activation::kGeGlu, Activation::kReGlu);
  config.feed_forward_bias = false;
  FeedForward gated(config);
  CHECK(gated->up->weight.sizes() == at::IntArrayRef({20, 6}));
  CHECK(gated->down->weight.sizes() == at::IntArrayRef({6, 10}));
  CHECK(!gated->up->bias.defined());
  CHECK(!gated->down->bias.defined());
  CHECK(gated(at::randn({2, 3, 6})).sizes() == at::IntArrayRef({2, 3, 6}));
}
