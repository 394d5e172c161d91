#include "apps/training/optimizers/adamw.h"

#include <cmath>

#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include "data/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace {

class TwoParameters : public torch::nn::Module {
 public:
  TwoParameters() {
    matrix = register_parameter("matrix", at::full({1, 2}, 1.0));
    vector = register_parameter("vector", at::full({2}, 1.0));
  }
  void set_gradients(float matrix_value, float vector_value) {
    matrix.mutable_grad() = at::full({1, 2}, matrix_value);
    vector.mutable_grad() = at::full({2}, vector_value);
  }
  at::Tensor matrix, vector;
};

}  // namespace

TEST_CASE("The first step of AdamW moves each weight by the learning rate, after decaying matrices alone") {
  TwoParameters module;
  zoo::AdamW optimizer(module, {.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.5, .grad_clip = 0});
  module.set_gradients(0.3F, -0.2F);
  optimizer.step(0.1);
  // The bias-corrected moments of one gradient g are g and g^2: the step is lr * sign(g).
  CHECK(module.matrix[0][0].item<double>() == Approx(1.0 * (1 - 0.1 * 0.5) - 0.1).epsilon(1e-6));
  CHECK(module.vector[0].item<double>() == Approx(1.0 + 0.1).epsilon(1e-6));
}

TEST_CASE("The second step weighs both gradients by the betas") {
  TwoParameters module;
  zoo::AdamW optimizer(module, {.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0, .grad_clip = 0});
  module.set_gradients(1.0F, 1.0F);
  optimizer.step(0.1);
  module.set_gradients(3.0F, 3.0F);
  optimizer.step(0.1);
  const double mean = (0.9 * 0.1 * 1 + 0.1 * 3) / (1 - 0.9 * 0.9);
  const double square = (0.99 * 0.01 * 1 + 0.01 * 9) / (1 - 0.99 * 0.99);
  CHECK(module.vector[0].item<double>() == Approx(1.0 - 0.1 - 0.1 * mean / std::sqrt(square)).epsilon(1e-5));
}

TEST_CASE("Clipping divides all gradients by their common norm, and only when it is too large") {
  TwoParameters clipped, small;
  const zoo::OptimizerOptions options{
      .beta1 = 0.5, .beta2 = 0.5, .eps = 1.0, .weight_decay = 0, .grad_clip = 1.0};
  zoo::AdamW optimizer(clipped, options);
  clipped.set_gradients(3.0F, 4.0F);  // norm sqrt(2 * 9 + 2 * 16)
  optimizer.step(1.0);
  const double norm = std::sqrt(50.0), g = 4.0 / norm;
  CHECK(optimizer.gradient_norm().item<double>() == Approx(norm));
  // With eps = 1 the step is g / (|g| + 1): it shows the size of the gradient that was used.
  CHECK(clipped.vector[0].item<double>() == Approx(1.0 - g / (g + 1)).epsilon(1e-4));

  zoo::AdamW gentle(small, options);
  small.set_gradients(0.1F, 0.2F);
  gentle.step(1.0);
  CHECK(small.vector[0].item<double>() == Approx(1.0 - 0.2 / 1.2).epsilon(1e-5));
}

TEST_CASE("A restored optimizer goes on as the one that was saved") {
  const zoo::test::TemporaryDirectory directory;
  const zoo::OptimizerOptions options{};
  TwoParameters first, second;
  zoo::AdamW saved(first, options);
  first.set_gradients(1.0F, -2.0F);
  saved.step(0.1);
  zoo::write_safetensors(directory / "optimizer.safetensors", saved.state());

  {
    const at::NoGradGuard no_grad;
    second.matrix.copy_(first.matrix);
    second.vector.copy_(first.vector);
  }
  zoo::AdamW restored(second, options);
  restored.load_state(zoo::SafetensorsFile(directory / "optimizer.safetensors"));
  for (auto* step : {&saved, &restored}) {
    (step == &saved ? first : second).set_gradients(0.5F, 0.25F);
    step->step(0.1);
  }
  CHECK(first.matrix.equal(second.matrix));
  CHECK(first.vector.equal(second.vector));
}

TEST_CASE("A state without a tensor is refused by its name") {
  const zoo::test::TemporaryDirectory directory;
  zoo::write_safetensors(directory / "optimizer.safetensors", {{"step", at::zeros({})}});
  TwoParameters module;
  zoo::AdamW optimizer(module, {});
  CHECK_THROWS_WITH(optimizer.load_state(zoo::SafetensorsFile(directory / "optimizer.safetensors")),
                    Catch::Contains("exp_avg.matrix"));
}

TEST_CASE("AdamW of parameters of all sizes equals its definition in double precision") {
  class ManyParameters : public torch::nn::Module {
   public:
    ManyParameters() {
      // Below and above a vector of 16 and a part of 4096.
      for (const auto& sizes : std::vector<std::vector<std::int64_t>>{{1}, {17}, {4096}, {3, 5}, {70, 130}})
        all.push_back(
            register_parameter(std::string("p").append(std::to_string(all.size())), at::randn(sizes)));
    }
    std::vector<at::Tensor> all;
  };
  at::manual_seed(6);
  ManyParameters module;
  zoo::AdamW optimizer(module,
                       {.beta1 = 0.7, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0.3, .grad_clip = 2.0});
  std::vector<at::Tensor> weights, means, squares;
  for (const at::Tensor& parameter : module.all) {
    weights.push_back(parameter.detach().to(at::kDouble));
    means.push_back(at::zeros_like(weights.back()));
    squares.push_back(at::zeros_like(weights.back()));
  }
  for (int step = 1; step <= 3; ++step) {
    double square = 0;
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& parameter : module.all) {
      // The last, of a matrix, with strides of its own.
      parameter.mutable_grad() =
          parameter.dim() > 1 ? at::randn(parameter.t().sizes()).t() : at::randn(parameter.sizes());
      gradients.push_back(parameter.grad().to(at::kDouble, /*non_blocking=*/false, /*copy=*/true));
      square += gradients.back().square().sum().item<double>();
    }
    optimizer.step(0.05);
    CHECK(optimizer.gradient_norm().item<double>() == Approx(std::sqrt(square)).epsilon(1e-6));
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const at::Tensor g = gradients[i] * (2.0 / std::sqrt(square));
      means[i] = 0.7 * means[i] + 0.3 * g;
      squares[i] = 0.9 * squares[i] + 0.1 * g.square();
      if (weights[i].dim() > 1) weights[i] = weights[i] * (1 - 0.05 * 0.3);
      const at::Tensor mean = means[i] / (1 - std::pow(0.7, step)),
                       deviation = (squares[i] / (1 - std::pow(0.9, step))).sqrt();
      weights[i] = weights[i] - 0.05 * mean / (deviation + 1e-3);
      INFO("step " << step << ", parameter " << i);
      CHECK((module.all[i] - weights[i]).abs().max().item<double>() < 2e-6);
    }
  }
}
