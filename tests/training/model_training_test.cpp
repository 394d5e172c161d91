// Training with the zoo's own models.
#include <algorithm>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randint.h>
#include <torch/csrc/autograd/function.h>

#include "apps/training/batches/block_batches.h"
#include "apps/training/metrics/task_metrics.h"
#include "apps/training/mixed_precision.h"
#include "models/layers/recompute.h"
#include "models/registry.h"
#include "tests/support/catch.h"

namespace {

zoo::TransformerConfig tiny(const std::string& family, double dropout) {
  zoo::TransformerConfig config = zoo::find_family(family).presets.front().config;
  config.vocab_size = 23;
  config.hidden_size = 16;
  config.num_layers = 3;
  config.num_decoder_layers = family == "t5" ? 2 : 0;
  config.num_heads = config.num_kv_heads = 2;
  config.head_dim = 8;
  config.embedding_size = family == "albert" ? 12 : 0;
  config.intermediate_size = 24;
  config.max_positions = 16;
  config.dropout = config.attention_dropout = config.embedding_dropout = dropout;
  if (config.logits_scale != 1.0) config.logits_scale = 0.25;
  return config;
}

zoo::ModelInputs random_inputs(std::int64_t rows) {
  zoo::ModelInputs inputs;
  inputs.input_ids = at::randint(3, 23, {rows, 10}, at::kLong);
  inputs.attention_mask = at::ones_like(inputs.input_ids);
  inputs.attention_mask[0].slice(0, 7).zero_();
  inputs.labels = inputs.input_ids.masked_fill(at::randint(0, 3, {rows, 10}, at::kLong).eq(0), -100);
  return inputs;
}

std::vector<at::Tensor> gradients(zoo::Model& model, const zoo::ModelInputs& inputs, at::ScalarType dtype) {
  at::manual_seed(5);  // of the dropout
  at::Tensor loss;
  {
    const zoo::AutocastScope autocast(dtype, c10::kCPU);
    loss = model.forward(inputs).loss;
  }
  loss.backward();
  std::vector<at::Tensor> found{loss.detach()};
  for (at::Tensor& weight : model.parameters()) {
    found.push_back(weight.grad().defined() ? weight.grad() : at::zeros_like(weight));
    weight.mutable_grad().reset();
  }
  return found;
}

// True if a part of the graph computes its activations again.
bool is_recomputed(const at::Tensor& loss) {
  std::vector<torch::autograd::Node*> nodes{loss.grad_fn().get()};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i]->name().find("Recompute") != std::string::npos) return true;
    for (const torch::autograd::Edge& edge : nodes[i]->next_edges())
      if (edge.function && std::ranges::count(nodes, edge.function.get()) == 0)
        nodes.push_back(edge.function.get());
  }
  return false;
}

}  // namespace

TEST_CASE("Recomputed blocks give the same gradients bit for bit, dropout and autocast included") {
  const auto [family, head] =
      GENERATE(std::tuple("gpt2", zoo::Head::kCausalLm), std::pair("llama", zoo::Head::kCausalLm),
               std::tuple("bert", zoo::Head::kMaskedLm), std::pair("albert", zoo::Head::kMaskedLm),
               std::tuple("t5", zoo::Head::kSeq2SeqLm));
  const auto dtype = GENERATE(at::kFloat, at::kBFloat16);
  if (std::string(family) == "albert" && dtype != at::kFloat) return;  // shared weights: see recompute()
  INFO(family << " " << dtype);
  at::manual_seed(1);
  const auto model = build_model(zoo::find_family(family), tiny(family, 0.2), head, 1);
  model->train();
  const zoo::ModelInputs inputs = random_inputs(3);
  const auto kept = gradients(*model, inputs, dtype);
  zoo::recompute_blocks(*model, true);
  const auto recomputed = gradients(*model, inputs, dtype);
  for (std::size_t i = 0; i < kept.size(); ++i) CHECK(kept[i].equal(recomputed[i]));
  const at::Tensor after = at::rand({1});
  zoo::recompute_blocks(*model, false);
  gradients(*model, inputs, dtype);
  CHECK(after.equal(at::rand({1})));  // what is drawn afterwards is the same, too
}

TEST_CASE("Blocks with experts are recomputed beside the balance of the experts") {
  at::manual_seed(1);
  zoo::TransformerConfig config = tiny("mixtral", 0.2);
  config.num_experts = 4;
  config.router_loss = true;
  config.router_loss_weight = 0.5;
  const auto model = build_model(zoo::find_family("mixtral"), config, zoo::Head::kCausalLm, 1);
  model->train();
  zoo::ModelInputs inputs = random_inputs(3);
  inputs.loss.router = true;
  const auto dtype = GENERATE(at::kFloat, at::kBFloat16);
  const auto kept = gradients(*model, inputs, dtype);
  zoo::recompute_blocks(*model, true);
  CHECK(is_recomputed(model->forward(inputs).loss));
  const auto recomputed = gradients(*model, inputs, dtype);
  for (std::size_t i = 0; i < kept.size(); ++i) CHECK(kept[i].equal(recomputed[i]));
}

TEST_CASE("Blocks are recomputed in evaluation mode, too, as preferences are learnt in") {
  at::manual_seed(1);
  const auto model = build_model(zoo::find_family("gpt2"), tiny("gpt2", 0.2), zoo::Head::kCausalLm, 1);
  const zoo::ModelInputs inputs = random_inputs(3);
  model->eval();
  const auto kept = gradients(*model, inputs, at::kFloat);
  CHECK_FALSE(is_recomputed(model->forward(inputs).loss));
  zoo::recompute_blocks(*model, true);
  CHECK(is_recomputed(model->forward(inputs).loss));
  const auto recomputed = gradients(*model, inputs, at::kFloat);
  for (std::size_t i = 0; i < kept.size(); ++i) CHECK(kept[i].equal(recomputed[i]));
}

TEST_CASE("A masked-lm head that is told where the labels are computes the same loss and gradients") {
  at::manual_seed(2);
  const auto model = build_model(zoo::find_family("bert"), tiny("bert", 0.0), zoo::Head::kMaskedLm, 1);
  zoo::ModelInputs inputs = random_inputs(4);
  inputs.loss.label_smoothing = 0.1;
  const auto whole = gradients(*model, inputs, at::kFloat);
  zoo::ModelBatch batch{.inputs = inputs};
  zoo::point_at_labels(inputs.labels, batch);
  CHECK(batch.targets == inputs.labels.ne(-100).sum().item<double>());
  const auto pointed = gradients(*model, batch.inputs, at::kFloat);
  CHECK(model->forward(batch.inputs).logits.size(0) == static_cast<std::int64_t>(batch.targets));
  for (std::size_t i = 0; i < whole.size(); ++i) CHECK(at::allclose(whole[i], pointed[i], 1e-5, 1e-7));
}

TEST_CASE("Label smoothing and class weights are those of the definition") {
  // Two rows of logits (0, ln 3): probabilities 1/4 and 3/4; labels 1 and 0.
  const at::Tensor logits = at::tensor({0.0, std::log(3.0), 0.0, std::log(3.0)}, at::kFloat).view({2, 2});
  const at::Tensor labels = at::tensor({1, 0}, at::kLong);
  const double right = -std::log(0.75), wrong = -std::log(0.25), both = (right + wrong) / 2;
  CHECK(zoo::cross_entropy(logits, labels).item<double>() == Approx((right + wrong) / 2));
  // Each target has 0.8 of the weight, and all classes share 0.2.
  CHECK(zoo::cross_entropy(logits.slice(0, 0, 1), labels.slice(0, 0, 1), {.label_smoothing = 0.2})
            .item<double>() == Approx(0.8 * right + 0.2 * both));
  const at::Tensor weights = at::tensor({3.0, 1.0}, at::kFloat);
  CHECK(zoo::cross_entropy(logits, labels, {.class_weights = weights}).item<double>() ==
        Approx((1 * right + 3 * wrong) / 4));
}

TEST_CASE("Words make entities by their prefixes") {
  const std::vector<std::string> names{"O", "B-PER", "I-PER", "B-LOC", "NUM"};
  using Entities = std::vector<zoo::Entity>;
  CHECK((zoo::entities_of({1, 2, 0, 1, 1}, names) == Entities{{"PER", 0, 2}, {"PER", 3, 4}, {"PER", 4, 5}}));
  CHECK((zoo::entities_of({2, 3, 4, 4}, names) == Entities{{"PER", 0, 1}, {"LOC", 1, 2}, {"NUM", 2, 4}}));
  CHECK(zoo::entities_of({0, 0}, names).empty());
  // seqeval.metrics.sequence_labeling.get_entities of these labels.
  const std::vector<std::string> more{"O", "B-PER", "I-PER", "E-PER", "S-PER"};
  CHECK((zoo::entities_of({1, 2, 3, 4, 4, 3, 3, 2, 0, 3}, more) == Entities{{"PER", 0, 3},
                                                                            {"PER", 3, 4},
                                                                            {"PER", 4, 5},
                                                                            {"PER", 5, 6},
                                                                            {"PER", 6, 7},
                                                                            {"PER", 7, 8},
                                                                            {"PER", 9, 10}}));
}

TEST_CASE("Classes are measured by accuracy and the mean of their F1") {
  const auto metric = make_metric(zoo::Task::kClassification, {"a", "b", "c"});  // "c" does not occur
  zoo::ModelInputs inputs;
  zoo::ModelOutput output;
  inputs.labels = at::tensor({0, 0, 0, 1}, at::kLong);
  output.logits = at::tensor({1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0}, at::kFloat).view({4, 3});  // a a b b
  metric->add(inputs, output);
  const auto scores = metric->take(0);
  REQUIRE(scores.size() == 2);
  CHECK(scores[0].value == Approx(0.75));
  CHECK(scores[1].value == Approx((2.0 * 2 / (2 + 3) + 2.0 * 1 / (2 + 1)) / 2));
}

TEST_CASE("An answer is measured by the tokens that it shares with the right one") {
  const auto metric = make_metric(zoo::Task::kQuestionAnswering, {});
  zoo::ModelInputs inputs;
  zoo::ModelOutput output;
  inputs.labels = at::tensor({1, 2, 3, 3}, at::kLong).view({2, 2});
  output.start_logits = at::tensor({0, 1, 0, 0, 0, 0, 0, 1}, at::kFloat).view({2, 4});  // 1, 3
  output.end_logits = at::tensor({0, 0, 0, 1, 0, 0, 0, 1}, at::kFloat).view({2, 4});    // 3, 3
  metric->add(inputs, output);
  const auto scores = metric->take(0);
  CHECK(scores[0].value == Approx(0.5));
  CHECK(scores[1].value == Approx((2.0 * 2 / (3 + 2) + 1) / 2));
  // Without an answer, (0, 0): the first row's 1 to 3 and then 0 to 3 are both wrong.
  inputs.labels = at::zeros({2, 2}, at::kLong);
  output.start_logits = at::tensor({0, 1, 0, 0, 1, 0, 0, 0}, at::kFloat).view({2, 4});
  metric->add(inputs, output);
  CHECK(metric->take(0)[1].value == 0);
}
