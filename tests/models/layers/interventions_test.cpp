#include "models/layers/interventions.h"

#include "models/analysis/sweep.h"
#include "models/layers/stack.h"
#include "tests/models/analysis/analysis_support.h"
#include "tests/support/catch.h"

using namespace zoo;
using zoo::analysis::run;
using zoo::test::analysed_models;
using zoo::test::c10_error_of;
using zoo::test::largest_difference;
using zoo::test::relative_error;

TEST_CASE("recording a pass gives what the pass gives") {
  const at::NoGradGuard no_grad;
  for (const auto& [name, model, inputs] : analysed_models()) {
    INFO(name);
    ModelInputs plain = inputs;
    plain.output_hidden_states = true;
    const ModelOutput expected = model->forward(plain);
    const analysis::Run recorded = run(*model, inputs);
    CHECK(relative_error(recorded.output.logits, expected.logits) < 1e-5);
    for (std::size_t i = 0; i + 1 < expected.hidden_states.size(); ++i)
      CHECK(relative_error(recorded.stream[i], expected.hidden_states[i]) < 1e-5);
  }
}

TEST_CASE("without norms after the sums, the stream is the sum of what the sublayers add") {
  const at::NoGradGuard no_grad;
  for (const test::AnalysedModel& each : analysed_models()) {
    if (each.config().norm_placement == NormPlacement::kPost) continue;
    INFO(each.name);
    const analysis::Run recorded = run(*each.model, each.inputs);
    at::Tensor sum = recorded.stream[0].to(at::kDouble);
    std::size_t layer = 0;
    for (const LayerActivations& of : recorded.output.activations) {
      for (const at::Tensor& added : {of.attention, of.cross_attention, of.feed_forward}) {
        if (added.defined()) sum = sum + added.to(at::kDouble);
      }
      CHECK(relative_error(recorded.stream[++layer], sum) < 1e-6);
    }
  }
}

TEST_CASE("a run patched with itself is the same bit for bit") {
  const at::NoGradGuard no_grad;
  for (const test::AnalysedModel& each : analysed_models()) {
    const analysis::Run own = run(*each.model, each.inputs);
    for (const Site& site : test::sites_of(each.config(), 1)) {
      INFO(each.name << ", part " << static_cast<int>(site.part) << ", head " << site.head);
      for (const std::vector<std::int64_t>& positions : {std::vector<std::int64_t>{}, {1, 4}}) {
        ModelInputs inputs = each.inputs;
        inputs.interventions = analysis::patches(*each.model, own, {site}, positions);
        REQUIRE(inputs.interventions.size() == 1);
        CHECK(at::equal(run(*each.model, inputs).output.logits, own.output.logits));
      }
    }
  }
}

TEST_CASE("a patch from another run arrives, and a causal model's earlier positions stay bit for bit") {
  const at::NoGradGuard no_grad;
  for (const test::AnalysedModel& each : analysed_models()) {
    ModelInputs other = each.inputs;
    other.input_ids = test::random_ids(each.config(), 1, 6, 99);
    if (other.decoder_input_ids.defined())
      other.decoder_input_ids = test::random_ids(each.config(), 1, 6, 98);
    const analysis::Run own = run(*each.model, each.inputs), source = run(*each.model, other);
    for (const Site& site : test::sites_of(each.config(), 1)) {
      INFO(each.name << ", part " << static_cast<int>(site.part) << ", head " << site.head);
      ModelInputs inputs = each.inputs;
      inputs.interventions = analysis::patches(*each.model, source, {site}, {3});
      const analysis::Run patched = run(*each.model, inputs);
      const at::Tensor found = analysis::activation_at(*each.model, patched, site);
      CHECK(at::equal(found.select(1, 3), analysis::activation_at(*each.model, source, site).select(1, 3)));
      CHECK(at::equal(found.select(1, 2), analysis::activation_at(*each.model, own, site).select(1, 2)));
      CHECK(largest_difference(patched.output.logits, own.output.logits) > 0);
      if (each.config().shape != Shape::kDecoder) continue;
      const at::Tensor before = own.output.logits.slice(1, 0, 3),
                       after = patched.output.logits.slice(1, 0, 3);
      // An expert's product has as many rows as tokens chose it, which may change its rounding.
      const double rounding = each.config().num_experts > 0 ? 1e-6 : 0;
      CHECK(largest_difference(after, before) <= rounding * before.abs().max().item<double>());
    }
  }
}

TEST_CASE("a model of which every layer is switched off is its embeddings and its head") {
  const at::NoGradGuard no_grad;
  for (const test::AnalysedModel& each : analysed_models()) {
    INFO(each.name);
    std::vector<Site> layers, sublayers;
    for (std::int64_t layer = 0; layer < each.config().num_layers; ++layer) {
      for (const Site& site : test::sites_of(each.config(), layer)) {
        if (site.head >= 0) continue;
        (site.part == LayerPart::kResidual ? layers : sublayers).push_back(site);
      }
    }
    ModelInputs inputs = each.inputs;
    inputs.interventions = analysis::ablated(*each.model, inputs, layers, analysis::Ablation::kZero);
    const analysis::Run off = run(*each.model, inputs);
    for (const at::Tensor& state : off.stream) CHECK(at::equal(state, off.stream[0]));
    if (each.config().norm_placement == NormPlacement::kPost) continue;
    inputs.interventions = analysis::ablated(*each.model, inputs, sublayers, analysis::Ablation::kZero);
    CHECK(at::equal(run(*each.model, inputs).stream.back(), off.stream[0]));
  }
}

TEST_CASE("an attention without heads adds the bias of its projection") {
  const at::NoGradGuard no_grad;
  const auto model = test::random_gpt(test::small_config(), 3);
  ModelInputs inputs{.input_ids = test::random_ids(test::small_config(), 1, 5, 4)};
  for (std::int64_t head = 0; head < 2; ++head)
    inputs.interventions.push_back({.site = {.layer = 2, .part = LayerPart::kAttention, .head = head}});
  const analysis::Run off = run(*model, inputs);
  const at::Tensor bias = analysis::head_stack(*model).block(2).attention->out->bias;
  CHECK(at::equal(off.output.activations[2].attention, bias.expand({1, 5, 12})));
  // One head is its columns of the projection.
  inputs.interventions.pop_back();
  const analysis::Run one = run(*model, inputs);
  const at::Tensor weight = analysis::head_stack(*model).block(2).attention->out->weight;
  const at::Tensor second = one.output.activations[2].attention_heads.select(1, 1);
  CHECK(relative_error(one.output.activations[2].attention,
                       second.matmul(weight.slice(1, 6, 12).t()) + bias) < 1e-6);
}

TEST_CASE("interventions with a cache are those without") {
  const at::NoGradGuard no_grad;
  const TransformerConfig config = test::small_config();
  const auto model = test::random_gpt(config, 3);
  ModelInputs inputs{.input_ids = test::random_ids(config, 1, 5, 4)};
  inputs.interventions.push_back({.site = {.layer = 1, .part = LayerPart::kAttention, .head = 1}});
  const at::Tensor whole = model->forward(inputs).logits;
  KeyValueCache cache(config, 1, 5, at::TensorOptions());
  std::vector<at::Tensor> pieces;
  for (const auto& [begin, end] : {std::pair{0, 3}, {3, 5}}) {
    ModelInputs piece = inputs;
    piece.input_ids = inputs.input_ids.slice(1, begin, end);
    piece.cache = &cache;
    pieces.push_back(model->forward(piece).logits);
  }
  CHECK(relative_error(at::cat(pieces, 1), whole) < 1e-5);
}

TEST_CASE("interventions that the model cannot do are refused by name") {
  const at::NoGradGuard no_grad;
  const TransformerConfig config = test::small_config();
  const auto model = test::random_gpt(config, 3);
  const auto error = [&](const Intervention& change) {
    ModelInputs inputs{.input_ids = test::random_ids(config, 1, 5, 4)};
    inputs.interventions = {change};
    return c10_error_of([&] { model->forward(inputs); });
  };
  using Catch::Contains;
  CHECK(error({.site = {.layer = 2}}) == "");
  CHECK_THAT(error({.site = {.layer = 3}}), Contains("layer 3 of the decoder, which has 3"));
  CHECK_THAT(error({.site = {.layer = -1}}), Contains("layer -1"));
  CHECK_THAT(error({.site = {.stack = Shape::kEncoder}}), Contains("encoder, which this pass does not run"));
  CHECK_THAT(error({.site = {.part = LayerPart::kCrossAttention}}), Contains("cross-attention"));
  CHECK_THAT(error({.site = {.part = LayerPart::kFeedForward, .head = 0}}), Contains("a part that has none"));
  CHECK_THAT(error({.site = {.part = LayerPart::kAttention, .head = 2}}), Contains("head 2"));
  CHECK_THAT(error({.site = {}, .positions = {1, 1}}), Contains("ascending, got [1, 1]"));
  CHECK_THAT(error({.site = {}, .positions = {5}}), Contains("position 5 of a sequence of 5"));
  CHECK_THAT(error({.site = {}, .value = at::zeros({1, 4, 12})}), Contains("[1, 5, 12], got [1, 4, 12]"));
  CHECK_THAT(error({.site = {}, .value = at::zeros({1, 2, 12}), .positions = {1}}), Contains("[1, 1, 12]"));

  ModelInputs inputs{.input_ids = test::random_ids(config, 1, 5, 4), .output_activations = true};
  model->train();
  CHECK_THAT(c10_error_of([&] { model->forward(inputs); }), Contains("evaluation mode"));
  model->eval();
  KeyValueCache cache(config, 1, 5, at::TensorOptions());
  inputs.cache = &cache;
  inputs.interventions = {{.site = {}, .positions = {1}}};
  CHECK_THAT(c10_error_of([&] { model->forward(inputs); }), Contains("with a cache"));
}
