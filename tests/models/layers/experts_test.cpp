#include "models/layers/experts.h"

#include <cmath>

#include <torch/csrc/autograd/autograd.h>

#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;
using zoo::test::largest_difference;
using zoo::test::relative_error;

namespace {

TransformerConfig experts_config() {
  TransformerConfig config = test::small_config();
  config.activation = Activation::kSwiGlu;
  config.feed_forward_bias = false;
  config.num_experts = 4;
  config.experts_per_token = 2;
  config.expert_size = 5;
  return config;
}

Experts random_experts(const TransformerConfig& config) {
  torch::manual_seed(1);
  Experts experts(config);
  const at::NoGradGuard no_grad;
  for (at::Tensor& weight : experts->parameters()) weight.normal_();
  return experts;
}

// Each token by itself: every expert is computed, and those that are not chosen have the weight 0.
at::Tensor token_by_token(Experts experts, const at::Tensor& x, const TransformerConfig& config) {
  std::vector<at::Tensor> rows;
  for (const at::Tensor& token : x.flatten(0, -2).unbind()) {
    const at::Tensor shares = at::matmul(experts->router->weight, token).softmax(0);
    const auto order = std::get<1>(shares.sort(/*dim=*/0, /*descending=*/true));
    const at::Tensor sum = shares.index_select(0, order.slice(0, 0, config.experts_per_token)).sum();
    at::Tensor y = at::zeros_like(token);
    for (std::int64_t i = 0; i < config.experts_per_token; ++i) {
      const std::int64_t e = order[i].item<std::int64_t>(), f = config.expert_width();
      const at::Tensor up = experts->up->weight.slice(0, e * 2 * f, (e + 1) * 2 * f);
      const at::Tensor down =
          experts->down->weight.slice(0, e * config.hidden_size, (e + 1) * config.hidden_size);
      const at::Tensor h = at::matmul(up, token);
      const at::Tensor inner = h.slice(0, 0, f) * h.slice(0, 0, f).sigmoid() * h.slice(0, f);
      const bool of_chosen = config.expert_weights == ExpertWeights::kOfChosen;
      y = y + (of_chosen ? shares[e] / sum : shares[e]) * at::matmul(down, inner);
    }
    rows.push_back(y);
  }
  return at::stack(rows).view_as(x);
}

}  // namespace

TEST_CASE("a mixture of experts gives each token what its experts give it alone, and the same gradients") {
  TransformerConfig config = experts_config();
  config.expert_weights = GENERATE(ExpertWeights::kOfAll, ExpertWeights::kOfChosen);
  Experts experts = random_experts(config);
  const at::Tensor x = at::randn({2, 5, config.hidden_size}).requires_grad_();
  const auto gradients = [&](const at::Tensor& y) {
    const at::Tensor direction = at::arange(y.numel(), at::kFloat).sin().view_as(y);
    return torch::autograd::grad({(y * direction).sum()},
                                 {x, experts->router->weight, experts->up->weight, experts->down->weight});
  };
  const at::Tensor found = experts->forward(x), expected = token_by_token(experts, x, config);
  CHECK(relative_error(found, expected.detach()) < 1e-5);
  const auto ours = gradients(found), theirs = gradients(expected);
  for (std::size_t i = 0; i < ours.size(); ++i) CHECK(relative_error(ours[i], theirs[i]) < 1e-5);
}

TEST_CASE("an expert that no token reads has a gradient of zero") {
  TransformerConfig config = experts_config();
  config.experts_per_token = 1;
  Experts experts = random_experts(config);
  {
    const at::NoGradGuard no_grad;
    experts->router->weight.zero_();
    experts->router->weight[2].fill_(1);
  }
  experts->forward(at::ones({1, 3, config.hidden_size})).sum().backward();
  const at::Tensor gradient = experts->down->weight.grad().unflatten(0, {4, -1}).abs().amax({1, 2});
  CHECK(gradient[2].item<double>() > 0);
  CHECK(gradient.count_nonzero().item<int>() == 1);
}

TEST_CASE("a shared expert reads every token through its gate, and the mixture is added to the residual") {
  TransformerConfig config = experts_config();
  config.shared_expert_size = 3;
  Experts experts = random_experts(config);
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({1, 3, config.hidden_size}), residual = at::randn_like(x);
  const at::Tensor gate = at::matmul(x, experts->shared_gate->weight.t()).sigmoid();
  const at::Tensor expected = residual + token_by_token(experts, x, config) + gate * experts->shared(x);
  CHECK(relative_error(experts->forward(x, residual), expected) < 1e-5);
}

TEST_CASE("the router's loss by hand: it is 1 of balanced experts, and leaves out hidden tokens") {
  // Two tokens and two experts, one each, with probabilities 3/4 and 1/4: f = (1/2, 1/2), p = (1/2, 1/2).
  const float third = std::log(3.0F);
  const at::Tensor balanced = at::tensor({third, 0.F, 0.F, third}).view({2, 2});
  CHECK(router_loss({balanced}, 1, {}).item<double>() == Approx(1.0));
  // All go to the first: f = (1, 0), p = (3/4, 1/4): 2 * 3/4.
  const at::Tensor uneven = at::tensor({third, 0.F, third, 0.F}).view({2, 2});
  CHECK(router_loss({uneven}, 1, {}).item<double>() == Approx(1.5));
  // Both layers together: f = (3/4, 1/4), p = (5/8, 3/8): 2 (15/32 + 3/32).
  CHECK(router_loss({balanced, uneven}, 1, {}).item<double>() == Approx(1.125));
  // Each token takes both experts: f = (1, 1), whatever p.
  CHECK(router_loss({uneven}, 2, {}).item<double>() == Approx(2.0));
  CHECK(router_loss({balanced}, 1, at::tensor({1, 0}).view({1, 2})).item<double>() == Approx(1.5));
}

TEST_CASE("experts that cannot be are refused by name") {
  const auto fault = [](auto change) {
    TransformerConfig config = experts_config();
    change(config);
    return test::c10_error_of([&] { config.validate(); });
  };
  using Catch::Contains;
  CHECK(fault([](TransformerConfig&) {}).empty());
  CHECK_THAT(fault([](TransformerConfig& c) { c.experts_per_token = 5; }), Contains("experts_per_token"));
  CHECK_THAT(fault([](TransformerConfig& c) { c.expert_layers = {true}; }), Contains("expert_layers"));
  CHECK_THAT(fault([](TransformerConfig& c) { c.feed_forward_bias = true; }), Contains("biases"));
  CHECK_THAT(fault([](TransformerConfig& c) { c.router_loss_weight = -1; }), Contains("router_loss_weight"));
}
