#include "apps/training/disagreement_loss.h"

#include "models/layers/attention/attention.h"
#include "models/layers/attention/disagreement.h"
#include "models/layers/norm.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;

namespace {

ModelInputs inputs_for(const Model& model) {
  const at::Tensor ids = test::random_ids(model.config(), 2, 7, 3);
  return {.input_ids = ids, .labels = ids};
}

double loss_with(const std::shared_ptr<Model>& model, Disagreement kind, double weight) {
  const DisagreementLoss loss(*model, kind, weight);
  return loss.forward(*model, inputs_for(*model)).loss.item<double>();
}

}  // namespace

TEST_CASE("the penalty is a weight times the heads' similarity, the mean over the layers") {
  const at::NoGradGuard no_grad;
  const auto model = test::random_gpt(test::small_config(), 4);
  ModelInputs inputs = inputs_for(*model);
  inputs.output_attentions = true;
  const ModelOutput plain = model->forward(inputs);
  double similarity = 0;
  for (const at::Tensor& weights : plain.attentions)
    similarity += position_similarity(weights).item<double>() / 3;
  CHECK(loss_with(model, Disagreement::kPositions, 0.5) ==
        Approx(plain.loss.item<double>() + 0.5 * similarity).epsilon(1e-5));
  CHECK(loss_with(model, Disagreement::kPositions, 0) == Approx(plain.loss.item<double>()).epsilon(1e-5));
}

TEST_CASE("an update whose layers are all left out has no penalty") {
  TransformerConfig config = test::small_config();
  config.layer_dropout = 1 - 1e-12;  // always
  const auto model = test::random_gpt(config, 4);
  model->train();
  const auto kind = GENERATE(Disagreement::kPositions, Disagreement::kOutputs);
  CHECK(loss_with(model, kind, 0.5) == loss_with(model, kind, 0));
}

TEST_CASE("subspaces and outputs: the values and what the heads make of them") {
  const at::NoGradGuard no_grad;
  TransformerConfig config = test::small_config();
  config.num_layers = 1;
  const auto model = test::random_gpt(config, 5);
  const double plain = model->forward(inputs_for(*model)).loss.item<double>();
  // The heads' values, from the model's own parts: the last third of its one projection.
  const auto parts = model->named_modules("");
  const auto find = [&](const std::string& end) {
    for (const auto& part : parts) {
      if (part.key().ends_with(end)) return part.value();
    }
    throw std::runtime_error("the model has no " + end);
  };
  ModelInputs inputs = inputs_for(*model);
  inputs.output_hidden_states = inputs.output_attentions = true;
  const ModelOutput output = model->forward(inputs);
  auto* attention = find("attention")->as<SelfAttentionImpl>();
  auto* norm = find("attention_norm")->as<NormImpl>();
  REQUIRE(attention != nullptr);
  REQUIRE(norm != nullptr);
  const at::Tensor qkv = attention->qkv->forward(norm->forward(output.hidden_states[0]));
  const at::Tensor values = qkv.slice(-1, 24).unflatten(-1, {2, 6}).transpose(1, 2);
  const at::Tensor heads = output.attentions[0].matmul(values);
  CHECK(loss_with(model, Disagreement::kSubspaces, 2) ==
        Approx(plain + 2 * subspace_similarity(values).item<double>()).epsilon(1e-5));
  CHECK(loss_with(model, Disagreement::kOutputs, 2) ==
        Approx(plain + 2 * subspace_similarity(heads).item<double>()).epsilon(1e-5));
}

TEST_CASE("every kind gives the projections a gradient, in a second pass the same") {
  const auto kind = GENERATE(Disagreement::kPositions, Disagreement::kSubspaces, Disagreement::kOutputs);
  const auto model = test::random_gpt(test::small_config(), 6);
  const auto gradient = [&](double weight) {
    model->zero_grad();
    const DisagreementLoss loss(*model, kind, weight);
    loss.forward(*model, inputs_for(*model)).loss.backward();
    model->zero_grad();
    loss.forward(*model, inputs_for(*model)).loss.backward();
    return model->named_parameters()["stack.blocks.0.attention.qkv.weight"].grad().clone();
  };
  const at::Tensor once = gradient(1), none = gradient(0), twice = gradient(2);
  CHECK(test::largest_difference(once, none) > 1e-4);
  CHECK(test::relative_error(twice - none, 2 * (once - none)) < 1e-3);
}

TEST_CASE("a model without heads to tell apart is refused") {
  TransformerConfig config = test::small_config();
  config.num_heads = 1;
  const auto one_head = test::random_gpt(config, 8);
  CHECK(test::error_of([&] { DisagreementLoss(*one_head, Disagreement::kOutputs, 1); }).find("one head") !=
        std::string::npos);
  const auto [family, preset] = find_preset("tutorial-embeddings");
  const auto no_attention = build_model(family, preset.config, Head::kCausalLm, 1);
  CHECK(test::error_of([&] {
          DisagreementLoss(*no_attention, Disagreement::kPositions, 1);
        }).find("no attention") != std::string::npos);
}
