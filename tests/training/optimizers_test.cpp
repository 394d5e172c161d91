#include <cmath>

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>

#include "apps/training/optimizers/muon.h"
#include "apps/training/optimizers/optimizer.h"
#include "apps/training/optimizers/weight_average.h"
#include "data/base/error.h"
#include "models/registry.h"
#include "tests/support/catch.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_directory.h"

using Catch::Contains;
using zoo::OptimizerKind;

namespace {

// The weight of a layer and a bias of the whole.
class MatrixAndVector : public torch::nn::Module {
 public:
  MatrixAndVector(const at::Tensor& matrix_values, const at::Tensor& vector_values) {
    const auto layer = std::make_shared<torch::nn::LinearImpl>(
        torch::nn::LinearOptions(matrix_values.size(1), matrix_values.size(0)).bias(false));
    register_module("layers", torch::nn::ModuleList())->push_back(layer);
    matrix = layer->weight;
    matrix.set_data(matrix_values.clone());
    vector = register_parameter("vector", vector_values.clone());
  }
  at::Tensor matrix, vector;
};

double difference(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

}  // namespace

TEST_CASE("AdamW, Adafactor, Muon and SGD follow torch.optim's, update for update") {
  const auto [name, kind, scale] =
      GENERATE(std::tuple("adamw", OptimizerKind::kAdamW, zoo::MuonScale::kOriginal),
               std::tuple("adafactor", OptimizerKind::kAdafactor, zoo::MuonScale::kOriginal),
               std::tuple("muon_original", OptimizerKind::kMuon, zoo::MuonScale::kOriginal),
               std::tuple("muon_match_rms_adamw", OptimizerKind::kMuon, zoo::MuonScale::kMatchRmsAdamW),
               std::tuple("sgd", OptimizerKind::kSgd, zoo::MuonScale::kOriginal));
  INFO(name);
  const zoo::SafetensorsFile golden(std::string(ZOO_SOURCE_DIR "/tests/golden/optimizers/") + name +
                                    ".safetensors");
  MatrixAndVector module(golden.tensor("matrix.0"), golden.tensor("vector.0"));
  const auto optimizer = zoo::make_optimizer(module, {.kind = kind,
                                                      .beta1 = 0.8,
                                                      .beta2 = 0.95,
                                                      .eps = 1e-6,
                                                      .momentum = 0.7,
                                                      .muon_scale = scale,
                                                      .weight_decay = 0.1,
                                                      .grad_clip = 0});
  for (int update = 0; update < 5; ++update) {
    const std::string number = std::to_string(update);
    module.matrix.mutable_grad() = golden.tensor("matrix.gradient." + number);
    module.vector.mutable_grad() = golden.tensor("vector.gradient." + number);
    optimizer->step(0.05);
    const std::string after = std::to_string(update + 1);
    CHECK(difference(module.matrix, golden.tensor("matrix." + after)) < 2e-5);
    CHECK(difference(module.vector, golden.tensor("vector." + after)) < 2e-5);
  }
}

TEST_CASE("Cautious weight decay leaves out weights that their step grows") {
  const auto [name, kind] = GENERATE(std::pair("adamw_cautious", OptimizerKind::kAdamW),
                                     std::pair("muon_cautious", OptimizerKind::kMuon));
  const bool kernels = GENERATE(true, false);
  INFO(name << (kernels ? "" : ", LibTorch's operators"));
  const zoo::SafetensorsFile golden(std::string(ZOO_SOURCE_DIR "/tests/golden/optimizers/") + name +
                                    ".safetensors");
  // With views that are not contiguous LibTorch's operators run.
  const auto laid_out = [&](const std::string& tensor) {
    const at::Tensor x = golden.tensor(tensor);
    return kernels || x.dim() < 2 ? x : x.t().contiguous().t();
  };
  MatrixAndVector module(laid_out("matrix.0"), golden.tensor("vector.0"));
  module.matrix.set_data(laid_out("matrix.0"));
  const auto optimizer = zoo::make_optimizer(module, {.kind = kind,
                                                      .beta1 = 0.8,
                                                      .beta2 = 0.95,
                                                      .eps = 1e-6,
                                                      .momentum = 0.7,
                                                      .muon_scale = zoo::MuonScale::kOriginal,
                                                      .weight_decay = 0.1,
                                                      .cautious_weight_decay = true,
                                                      .grad_clip = 0});
  for (int update = 0; update < 5; ++update) {
    const std::string number = std::to_string(update), after = std::to_string(update + 1);
    module.matrix.mutable_grad() = laid_out("matrix.gradient." + number);
    module.vector.mutable_grad() = golden.tensor("vector.gradient." + number);
    optimizer->step(0.05, std::pow(0.5, update));
    CHECK(difference(module.matrix, golden.tensor("matrix." + after)) < 2e-5);
    CHECK(difference(module.vector, golden.tensor("vector." + after)) < 2e-5);
  }
}

TEST_CASE("Adafactor moves weights of zero as if their size were a thousandth") {
  // Equal gradients make a first change of 1, by hand: -0.001 * 0.05.
  MatrixAndVector module(at::zeros({2, 3}), at::zeros({3}));
  const auto optimizer =
      zoo::make_optimizer(module, {.kind = OptimizerKind::kAdafactor, .weight_decay = 0, .grad_clip = 0});
  module.matrix.mutable_grad() = at::full({2, 3}, 0.5);
  module.vector.mutable_grad() = at::full({3}, 0.5);
  optimizer->step(0.05);
  CHECK(difference(module.matrix, at::full({2, 3}, -5e-5)) < 1e-9);
  CHECK(difference(module.vector, at::full({3}, -5e-5)) < 1e-9);
}

TEST_CASE("An optimizer without cautious weight decay says so") {
  torch::nn::Linear module(2, 2);
  CHECK_THAT(zoo::test::message_of([&] {
               zoo::make_optimizer(*module, {.kind = OptimizerKind::kLion, .cautious_weight_decay = true});
             }),
             Contains("'cautious_weight_decay': 'optimizer' lion has none"));
}

TEST_CASE("Muon orthogonalizes matrices of all shapes, on the kernels and on LibTorch's operators") {
  const auto [rows, columns] = GENERATE(std::tuple(1, 1), std::tuple(1, 7), std::tuple(5, 3),
                                        std::tuple(40, 100), std::tuple(130, 70), std::tuple(192, 192));
  // With views that are not contiguous LibTorch's operators run.
  const bool kernels = GENERATE(true, false);
  INFO(rows << " x " << columns << (kernels ? "" : ", LibTorch's operators"));
  at::manual_seed(3);
  at::Tensor values = at::randn({rows, columns});
  if (!kernels) values = values.t().contiguous().t();
  MatrixAndVector module(values, at::full({2}, 1.0));
  zoo::Muon optimizer(module, {.momentum = 0.0, .weight_decay = 0, .grad_clip = 0});
  const at::Tensor gradient = at::randn({rows, columns});
  module.matrix.mutable_grad() = gradient.clone();
  optimizer.step(1.0);
  // Jordan et al. (2024), in float64 and product by product.
  at::Tensor x = gradient.to(at::kDouble) / gradient.to(at::kDouble).norm();
  for (int iteration = 0; iteration < 5; ++iteration) {
    const at::Tensor gram = x.mm(x.t());
    x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram.mm(gram)).mm(x);
  }
  const double scale = 0.2 * std::sqrt(std::max(rows, columns));
  CHECK(difference(module.matrix, values - scale * x) < 2e-4 * scale);
}

TEST_CASE("Muon updates each of the matrices that a weight stacks for itself") {
  at::manual_seed(4);
  const at::Tensor upper = at::randn({4, 6}), lower = at::randn({8, 6}), vector = at::full({2}, 1.0);
  const at::Tensor upper_gradient = at::randn({4, 6}), lower_gradient = 5 * at::randn({8, 6});
  const auto moved = [&](const at::Tensor& matrix, const at::Tensor& gradient,
                         const std::vector<std::int64_t>& rows) {
    MatrixAndVector module(matrix, vector);
    zoo::Muon optimizer(module,
                        {.stacked_rows = {{"layers.0.weight", rows}}, .weight_decay = 0.1, .grad_clip = 0});
    module.matrix.mutable_grad() = gradient.clone();
    optimizer.step(0.1);
    return module.matrix.detach().clone();
  };
  const at::Tensor together =
      moved(at::cat({upper, lower}), at::cat({upper_gradient, lower_gradient}), {4, 8});
  CHECK(together.equal(at::cat({moved(upper, upper_gradient, {4}), moved(lower, lower_gradient, {8})})));
}

TEST_CASE("Muon leaves embeddings, heads, routers and vectors to AdamW") {
  zoo::TransformerConfig config = zoo::find_family("mixtral").base;
  config.vocab_size = 11;
  config.hidden_size = config.intermediate_size = 8;
  config.num_layers = 1;
  config.num_heads = 2;
  config.num_kv_heads = 1;
  config.num_experts = 3;
  config.experts_per_token = 2;
  const auto model = zoo::find_family("mixtral").build(config, zoo::Head::kCausalLm);
  const std::map<std::string, std::vector<std::int64_t>> expected{
      {"stack.blocks.0.attention.qkv.weight", {8, 4, 4}},
      {"stack.blocks.0.attention.out.weight", {8}},
      {"stack.blocks.0.experts.up.weight", {16, 16, 16}},
      {"stack.blocks.0.experts.down.weight", {8, 8, 8}}};
  CHECK(zoo::hidden_matrices(*model, {{"stack.blocks.0.attention.qkv.weight", {8, 4, 4}}}) == expected);
  torch::nn::Linear alone(2, 2);
  CHECK_THROWS_WITH(zoo::Muon(*alone, {}), Catch::Contains("none of them is trained"));
}

TEST_CASE("Lion moves by the sign of the interpolated moment, and decays matrices") {
  MatrixAndVector module(at::full({1, 1}, 1.0), at::full({1}, 1.0));
  const auto optimizer = zoo::make_optimizer(
      module,
      {.kind = OptimizerKind::kLion, .beta1 = 0.5, .beta2 = 0.9, .weight_decay = 0.2, .grad_clip = 0});
  const auto step = [&](float gradient) {
    module.matrix.mutable_grad() = at::full({1, 1}, gradient);
    module.vector.mutable_grad() = at::full({1}, gradient);
    optimizer->step(0.1);
  };
  step(1.0F);  // moment 0.1
  CHECK(module.vector.item<float>() == Approx(0.9));
  CHECK(module.matrix.item<float>() == Approx(1.0 * (1 - 0.1 * 0.2) - 0.1));
  step(-0.05F);  // 0.5 * 0.1 - 0.5 * 0.05 > 0: down again; moment 0.09 - 0.005
  CHECK(module.vector.item<float>() == Approx(0.8));
  step(-0.2F);  // 0.5 * 0.085 - 0.5 * 0.2 < 0
  CHECK(module.vector.item<float>() == Approx(0.9));
}

TEST_CASE("Where a gradient is not finite no optimizer moves a weight, nor its memory") {
  for (std::size_t i = 0; i < zoo::kOptimizerNames.size(); ++i) {
    const std::string& name = zoo::kOptimizerNames[i];
    INFO(name);
    MatrixAndVector module(at::full({1, 2}, 1.0), at::full({2}, 1.0));
    const auto optimizer = zoo::make_optimizer(module, {.kind = static_cast<zoo::OptimizerKind>(i)});
    module.matrix.mutable_grad() = at::full({1, 2}, 0.5);
    module.vector.mutable_grad() = at::full({2}, 0.5);
    optimizer->step(0.1);
    const at::Tensor before = module.vector.detach().clone();
    zoo::NamedTensors state;
    for (const auto& [key, tensor] : optimizer->state()) state.emplace_back(key, tensor.clone());
    module.matrix.mutable_grad() = at::full({1, 2}, std::numeric_limits<float>::infinity());
    optimizer->step(0.1);
    CHECK(module.vector.equal(before));
    CHECK_FALSE(optimizer->gradient_norm().isfinite().item<bool>());
    const zoo::NamedTensors after = optimizer->state();
    for (std::size_t i = 0; i < after.size(); ++i) CHECK(after[i].second.equal(state[i].second));
  }
}

TEST_CASE("Every optimizer goes on from its saved state as if it had never stopped") {
  const zoo::test::TemporaryDirectory directory;
  for (std::size_t i = 0; i < zoo::kOptimizerNames.size(); ++i) {
    const std::string& name = zoo::kOptimizerNames[i];
    INFO(name);
    const zoo::OptimizerOptions options{.kind = static_cast<zoo::OptimizerKind>(i)};
    MatrixAndVector first(at::full({2, 2}, 1.0), at::full({2}, 1.0));
    const auto saved = zoo::make_optimizer(first, options);
    first.matrix.mutable_grad() = at::tensor({1.0, -2.0, 3.0, 0.5}, at::kFloat).view({2, 2});
    first.vector.mutable_grad() = at::tensor({1.0, -2.0}, at::kFloat);
    saved->step(0.1);
    zoo::write_safetensors(directory / name, saved->state());
    MatrixAndVector second(first.matrix.detach(), first.vector.detach());
    const auto restored = zoo::make_optimizer(second, options);
    restored->load_state(zoo::SafetensorsFile(directory / name));
    for (auto* module : {&first, &second}) {
      module->matrix.mutable_grad() = at::full({2, 2}, -0.25);
      module->vector.mutable_grad() = at::full({2}, 0.75);
      (module == &first ? saved : restored)->step(0.1);
    }
    CHECK(first.matrix.equal(second.matrix));
    CHECK(first.vector.equal(second.vector));
  }
}

TEST_CASE("The average of weights forgets by its decay and changes places with them") {
  MatrixAndVector module(at::full({1, 1}, 1.0), at::full({1}, 1.0));
  zoo::WeightAverage average(module, 0.75);
  {
    const at::NoGradGuard no_grad;
    module.vector.fill_(5.0);
  }
  average.update();  // 0.75 * 1 + 0.25 * 5
  {
    const zoo::AverageScope scope(&average);
    CHECK(module.vector.item<float>() == Approx(2.0));
  }
  CHECK(module.vector.item<float>() == 5.0F);
}

TEST_CASE("An update with a spike of the gradient changes nothing, and the next ones go on as without it") {
  const OptimizerKind kind =
      GENERATE(OptimizerKind::kAdamW, OptimizerKind::kAdafactor, OptimizerKind::kSgd, OptimizerKind::kMuon);
  const at::Tensor matrix = at::full({2, 2}, 0.5), vector = at::full({2}, 0.25);
  MatrixAndVector calm(matrix, vector), spiked(matrix, vector);
  const zoo::OptimizerOptions options{.kind = kind, .grad_clip = 1.0, .skip_spikes = 3};
  const auto without = zoo::make_optimizer(calm, options);
  auto with = zoo::make_optimizer(spiked, options);
  const auto step = [&](MatrixAndVector& module, zoo::Optimizer& optimizer, double norm) {
    module.matrix.mutable_grad() = at::tensor({0.6, 0.0, 0.0, 0.8}, at::kFloat).view({2, 2}) * norm;
    module.vector.mutable_grad() = at::zeros({2});
    optimizer.step(0.01);
  };
  step(spiked, *with, 1);
  step(spiked, *with, 100);  // among the first, which are all usual
  step(calm, *without, 1);
  step(calm, *without, 100);
  for (int update = 0; update < 200; ++update) {
    step(calm, *without, 1);
    step(spiked, *with, 1);
    if (update == 150) step(spiked, *with, 50);
  }
  CHECK(at::equal(calm.matrix, spiked.matrix));
  CHECK(with->skipped().item<int>() == 1);
  CHECK(without->skipped().item<int>() == 0);
}

TEST_CASE("Gradients that stay large become usual, in a resumed run as in one") {
  const zoo::test::TemporaryDirectory directory;
  const at::Tensor matrix = at::full({1, 1}, 1.0), vector = at::full({1}, 1.0);
  const zoo::OptimizerOptions options{.kind = OptimizerKind::kSgd, .skip_spikes = 3};
  const auto step = [&](MatrixAndVector& module, zoo::Optimizer& optimizer, double norm) {
    module.matrix.mutable_grad() = at::full({1, 1}, norm);
    module.vector.mutable_grad() = at::zeros({1});
    optimizer.step(1e-3);
  };
  MatrixAndVector module(matrix, vector);
  const auto optimizer = zoo::make_optimizer(module, options);
  for (int update = 0; update < 60; ++update) step(module, *optimizer, 1);
  // The k-th norm moves the usual one by (3 - 1) / k of itself: 3 * 63/61 * 64/62 * ... * 72/70 is 4.06.
  for (int update = 0; update < 5; ++update) step(module, *optimizer, 4);
  zoo::write_safetensors(directory.path() / "state", optimizer->state());
  MatrixAndVector other(module.matrix.detach(), vector);
  const auto resumed = zoo::make_optimizer(other, options);
  resumed->load_state(zoo::SafetensorsFile(directory.path() / "state"));
  for (int update = 0; update < 15; ++update) step(other, *resumed, 4);
  CHECK(resumed->skipped().item<int>() == 10);
}

TEST_CASE("A run that is resumed with the bound on spikes learns what is usual first") {
  const zoo::test::TemporaryDirectory directory;
  const at::Tensor matrix = at::full({1, 1}, 1.0), vector = at::full({1}, 1.0);
  const auto step = [&](MatrixAndVector& module, zoo::Optimizer& optimizer, double norm) {
    module.matrix.mutable_grad() = at::full({1, 1}, norm);
    module.vector.mutable_grad() = at::zeros({1});
    optimizer.step(1e-3);
  };
  MatrixAndVector module(matrix, vector);
  const auto optimizer = zoo::make_optimizer(module, {.kind = OptimizerKind::kSgd});
  for (int update = 0; update < 60; ++update) step(module, *optimizer, 1);
  zoo::write_safetensors(directory.path() / "state", optimizer->state());
  const auto resumed = zoo::make_optimizer(module, {.kind = OptimizerKind::kSgd, .skip_spikes = 3});
  resumed->load_state(zoo::SafetensorsFile(directory.path() / "state"));
  for (int update = 0; update < 60; ++update) step(module, *resumed, 1);
  CHECK(resumed->skipped().item<int>() == 0);
  step(module, *resumed, 50);
  CHECK(resumed->skipped().item<int>() == 1);
}
