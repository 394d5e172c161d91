#include <cmath>

#include "models/analysis/attribution.h"
#include "models/analysis/logit_lens.h"
#include "models/analysis/rollout.h"
#include "models/analysis/sweep.h"
#include "models/inference/packed_engine.h"
#include "models/layers/embeddings.h"
#include "models/layers/stack.h"
#include "tests/models/analysis/analysis_support.h"
#include "tests/support/catch.h"

using namespace zoo;
using namespace zoo::analysis;
using zoo::test::analysed_models;
using zoo::test::c10_error_of;
using zoo::test::relative_error;

namespace {

// The final norm makes (1, -1) or (-1, 1) of a state of two numbers, and three tokens are (1, 0), (0, 1) and
// (0, 0): a state whose first number is larger gives logits (1, -1, 0).
std::shared_ptr<Model> model_of_two_numbers() {
  TransformerConfig config = test::small_config();
  config.vocab_size = 3;
  config.hidden_size = 2;
  config.num_heads = 1;
  config.num_layers = 1;
  config.layer_norm_eps = 1e-12;
  auto model = test::random_gpt(config, 1);
  const at::NoGradGuard no_grad;
  for (auto& parameter : model->named_parameters()) parameter.value().zero_();
  TransformerStackImpl& stack = head_stack(*model);
  stack.final_norm->weight.fill_(1);
  model->parts().embeddings->token->weight.copy_(at::tensor({1.F, 0.F, 0.F, 1.F, 0.F, 0.F}).view({3, 2}));
  // Zero weights leave the bias: the layer adds (0, 4) wherever it is.
  stack.block(0).feed_forward->down->bias.copy_(at::tensor({0.F, 4.F}));
  return model;
}

double bits(std::initializer_list<double> probabilities) {
  double sum = 0;
  for (const double p : probabilities) sum -= p * std::log2(p);
  return sum;
}

}  // namespace

TEST_CASE("the logit lens of a model of two numbers, by hand") {
  const at::NoGradGuard no_grad;
  const auto model = model_of_two_numbers();
  const Run two = run(*model, {.input_ids = at::tensor({0, 1}, at::kLong).view({1, 2})});
  const LogitLens lens = logit_lens(*model, two, {.top_k = 9, .token = 2});
  // Before the layer position 0 has (1, 0), position 1 (0, 1); after it (1, 4) and (0, 5).
  const double e = std::exp(1.0), sum = e + 1 + 1 / e;
  const at::Tensor first = at::tensor({0, 2, 1}, at::kLong), second = at::tensor({1, 2, 0}, at::kLong);
  CHECK(at::equal(lens.ids, at::stack({at::stack({first, second}), at::stack({second, second})})));
  const at::Tensor probabilities = at::tensor({e / sum, 1 / sum, 1 / e / sum}, at::kDouble).expand({2, 2, 3});
  CHECK(relative_error(lens.probabilities, probabilities) < 1e-6);
  const double entropy = bits({e / sum, 1 / sum, 1 / e / sum});
  CHECK(relative_error(lens.entropies, at::full({2, 2}, entropy, at::kDouble)) < 1e-6);
  // KL of (b, a) from (a, b) with log ratio 2 nats: (a - b) 2 / ln 2.
  const double divergence = (e / sum - 1 / e / sum) * 2 / std::log(2.0);
  CHECK(relative_error(lens.divergences, at::tensor({divergence, 0.0, 0.0, 0.0}).view({2, 2})) < 1e-6);
  CHECK(relative_error(lens.token_probabilities, at::full({2, 2}, 1 / sum, at::kDouble)) < 1e-6);
  CHECK(at::equal(lens.token_ranks, at::full({2, 2}, 1, at::kLong)));

  const LogitLens one = logit_lens(*model, two, {.top_k = 1, .positions = {1}});
  CHECK(at::equal(one.ids.flatten(), at::tensor({1, 1}, at::kLong)));
  CHECK(relative_error(stream_norms(two)[1], at::tensor({std::sqrt(17.0), 5.0}).view({1, 2})) < 1e-6);
}

TEST_CASE("the lens after the last layer is the model's own answer, in every family") {
  const at::NoGradGuard no_grad;
  for (const test::AnalysedModel& each : analysed_models()) {
    INFO(each.name);
    const Run own = run(*each.model, each.inputs);
    CHECK(relative_error(lens_logits(*each.model, own.stream.back()), own.output.logits) < 1e-6);
    const LogitLens lens = logit_lens(*each.model, own, {});
    CHECK(lens.ids.size(0) == each.config().num_layers + 1);
    CHECK(at::equal(lens.ids[-1].select(1, 0), own.output.logits[0].argmax(-1)));
    CHECK(lens.divergences[-1].abs().max().item<float>() == 0);
  }
}

TEST_CASE("the shares of a logit sum to it, in every family whose stream is a sum") {
  const at::NoGradGuard no_grad;
  int exact = 0, refused = 0;
  for (const test::AnalysedModel& each : analysed_models()) {
    INFO(each.name);
    const Run own = run(*each.model, each.inputs);
    const LogitTarget target{.token = 5, .other = 2, .position = 4};
    if (each.config().norm_placement == NormPlacement::kPost || each.model->parts().head.dense) {
      CHECK_THAT(c10_error_of([&] { attribute_logit(*each.model, own, target); }),
                 Catch::Contains("not a sum"));
      ++refused;
      continue;
    }
    ++exact;
    const LogitAttribution shares = attribute_logit(*each.model, own, target);
    double sum = shares.embeddings + shares.biases;
    sum += (shares.attention + shares.feed_forward).sum().item<double>();
    if (each.config().cross_attention) sum += shares.cross_attention.sum().item<double>();
    at::Tensor logits = own.output.logits[0][4].to(at::kDouble);
    if (const double c = each.model->config().logits_softcap; c > 0) logits = c * at::atanh(logits / c);
    const double expected = (logits[5] - logits[2]).item<double>();
    const double largest = logits.abs().max().item<double>();
    CHECK(std::abs(sum - expected) < 2e-5 * largest);
    CHECK(std::abs(shares.logit - expected) < 2e-5 * largest);
    // Heads, and the projection's bias where there is one, are the attention.
    const at::Tensor rest = shares.attention - shares.heads.sum(-1);
    const bool biased = each.config().attention_output_bias;
    CHECK((rest.abs().max().item<double>() > 1e-5 * largest) == biased);
  }
  CHECK(exact >= 10);
  CHECK(refused >= 5);
}

TEST_CASE("attention rollout of two layers, by hand") {
  // One head of (1, 0; 0.6, 0.4) and one of (1, 0; 0.4, 0.6): mean (1, 0; 0.5, 0.5), with the residual
  // connection M = (1, 0; 0.25, 0.75), and M M = (1, 0; 0.4375, 0.5625).
  const at::Tensor heads = at::tensor({1.F, 0.F, 0.6F, 0.4F, 1.F, 0.F, 0.4F, 0.6F}).view({1, 2, 2, 2});
  const at::Tensor rollout = attention_rollout({heads, heads});
  const at::Tensor expected =
      at::tensor({1.0, 0.0, 0.25, 0.75, 1.0, 0.0, 0.4375, 0.5625}, at::kDouble).view({2, 1, 2, 2});
  CHECK(relative_error(rollout, expected) < 1e-6);
  // A row without visible keys reads itself alone.
  CHECK(at::equal(attention_rollout({at::zeros({1, 1, 2, 2})})[0][0], at::eye(2)));
  CHECK_THAT(c10_error_of([] {
               attention_rollout({at::ones({1, 1, 2, 3})});
             }),
             Catch::Contains("[B, H, T, T], got [1, 1, 2, 3]"));
  CHECK_THAT(c10_error_of([] { attention_rollout({}); }), Catch::Contains("attention"));
}

TEST_CASE("mean ablation writes the mean over the positions that the mask keeps") {
  const at::NoGradGuard no_grad;
  const auto model = test::random_gpt(test::small_config(), 3);
  ModelInputs inputs{.input_ids = test::random_ids(test::small_config(), 1, 5, 4),
                     .attention_mask = at::tensor({0, 1, 1, 1, 1}).view({1, 5})};
  const Site head{.layer = 1, .part = LayerPart::kAttention, .head = 1};
  const Run own = run(*model, inputs);
  const at::Tensor values = activation_at(*model, own, head);
  const at::Tensor mean = (values[0][1] + values[0][2] + values[0][3] + values[0][4]) / 4;
  inputs.interventions = ablated(*model, inputs, {head}, Ablation::kMean);
  const Run off = run(*model, inputs);
  CHECK(relative_error(activation_at(*model, off, head), mean.expand({1, 5, 6})) < 1e-6);
  inputs.interventions.clear();
  CHECK_THAT(c10_error_of([&] { ablated(*model, inputs, {{.layer = 1}}, Ablation::kMean); }),
             Catch::Contains("no mean"));
  CHECK_THAT(c10_error_of([&] {
               ablated(*model, inputs, {{.layer = 3, .part = LayerPart::kFeedForward}}, Ablation::kMean);
             }),
             Catch::Contains("layer 3 of the decoder was asked for, which has 3"));
}

TEST_CASE("a sweep finds the position where the inputs differ, and the last layer's answer") {
  const at::NoGradGuard no_grad;
  const TransformerConfig config = test::small_config();
  const auto model = test::random_gpt(config, 3);
  ModelInputs clean{.input_ids = at::tensor({1, 2, 3, 4, 5}, at::kLong).view({1, 5})}, corrupted = clean;
  corrupted.input_ids = at::tensor({1, 2, 9, 4, 5}, at::kLong).view({1, 5});
  SweepOptions options{.target = {.token = 7, .other = 8, .position = 4}};
  std::vector<std::int64_t> steps;
  options.progress = [&](std::int64_t done, std::int64_t total) {
    CHECK(total == 15);
    steps.push_back(done);
  };
  const PatchEffects effects = patch_sweep(*model, clean, corrupted, options);
  CHECK(steps.size() == 15);
  CHECK(steps.back() == 15);
  CHECK(std::abs(effects.clean - effects.corrupted) > 1e-3);
  const auto value = [&](std::int64_t layer, std::int64_t position) {
    return effects.patched[layer][position].item<double>();
  };
  for (std::int64_t layer = 0; layer < 3; ++layer) {
    CHECK(value(layer, 0) == effects.corrupted);  // equal in both
    CHECK(value(layer, 1) == effects.corrupted);
  }
  // The answer is read at the last position of the last layer, and there only.
  for (std::int64_t position = 0; position < 4; ++position) CHECK(value(2, position) == effects.corrupted);
  CHECK(value(2, 4) == effects.clean);
  CHECK(value(0, 2) != effects.corrupted);

  options.progress = nullptr;
  options.part = LayerPart::kAttention;
  options.heads = true;
  const PatchEffects heads = patch_sweep(*model, clean, corrupted, options);
  CHECK(heads.patched.sizes() == at::IntArrayRef({3, 2}));
  options.positions = {0, 1};  // where both runs are equal
  CHECK(patch_sweep(*model, clean, corrupted, options).patched.eq(heads.corrupted).all().item<bool>());
  clean.input_ids = clean.input_ids.slice(1, 1);
  CHECK_THAT(c10_error_of([&] { patch_sweep(*model, clean, corrupted, options); }),
             Catch::Contains("[1, 4] and [1, 5]"));
}

TEST_CASE("a sweep of ablations is one ablation at a time") {
  const at::NoGradGuard no_grad;
  const auto model = test::random_gpt(test::small_config(), 3);
  const ModelInputs inputs{.input_ids = test::random_ids(test::small_config(), 1, 5, 4)};
  for (const Ablation ablation : {Ablation::kZero, Ablation::kMean}) {
    const SweepOptions options{.part = LayerPart::kAttention, .heads = true, .target = {.token = 7}};
    const AblationEffects effects = ablation_sweep(*model, inputs, options, ablation);
    CHECK(effects.ablated.sizes() == at::IntArrayRef({3, 2}));
    const double whole = measure(*model, run(*model, inputs).output, options.target);
    CHECK(effects.whole == Approx(whole).epsilon(1e-6));
    ModelInputs off = inputs;
    const Site site{.layer = 2, .part = LayerPart::kAttention, .head = 1};
    off.interventions = ablated(*model, inputs, {site}, ablation);
    const double one = measure(*model, model->forward(off), options.target);
    CHECK(effects.ablated[2][1].item<double>() == Approx(one).epsilon(1e-6));
    CHECK(std::abs(one - whole) > 1e-5);
  }
  const AblationEffects layers = ablation_sweep(*model, inputs, {.target = {.token = 7}}, Ablation::kZero);
  CHECK(layers.ablated.sizes() == at::IntArrayRef({3, 1}));
  CHECK_THAT(
      c10_error_of([&] { ablation_sweep(*model, inputs, {.stack = Shape::kEncoder}, Ablation::kZero); }),
      Catch::Contains("no encoder"));
}

TEST_CASE("what has no layers or no logits to look into is refused by name") {
  const at::NoGradGuard no_grad;
  using Catch::Contains;
  const TransformerConfig config = test::small_encoder_config();
  const ModelInputs inputs{.input_ids = test::random_ids(config, 1, 5, 4)};
  const auto packed = test::random_model("bert", config, Head::kMaskedLm, 1);
  pack_stacks(*packed, {});
  CHECK_THAT(c10_error_of([&] { run(*packed, inputs); }), Contains("packed"));
  ModelInputs recorded = inputs;
  recorded.output_activations = true;
  CHECK_THAT(c10_error_of([&] { packed->forward(recorded); }),
             Contains("packed weights record no activations"));
  recorded.output_activations = false;
  recorded.interventions = {{.site = {.stack = Shape::kEncoder}}};
  CHECK_THAT(c10_error_of([&] { packed->forward(recorded); }), Contains("take no interventions"));
  const auto bare = test::random_model("bert", config, Head::kBase, 1);
  const Run own = run(*bare, inputs);
  CHECK_THAT(c10_error_of([&] { logit_lens(*bare, own, {}); }), Contains("logits at every position"));
  CHECK_THAT(c10_error_of([&] { measure(*bare, own.output, {}); }), Contains("no logits"));
  const auto span = test::random_model("bert", config, Head::kQuestionAnswering, 1);
  const auto flags = test::random_model("electra", config, Head::kReplacedTokens, 1);
  CHECK_THAT(c10_error_of([&] { measure(*flags, flags->forward(inputs), {}); }), Contains("a flag or span"));
  TransformerConfig number = config;
  number.num_labels = 1;
  const auto regression = test::random_model("bert", number, Head::kSequenceClassification, 1);
  CHECK_THAT(c10_error_of([&] { measure(*regression, regression->forward(inputs), {}); }),
             Contains("regression"));
  number.num_labels = 3;
  number.problem_type = ProblemType::kMultiLabel;
  const auto several = test::random_model("bert", number, Head::kSequenceClassification, 1);
  CHECK_THAT(c10_error_of([&] { measure(*several, several->forward(inputs), {}); }),
             Contains("several labels"));
  CHECK_THAT(c10_error_of([&] { logit_lens(*span, run(*span, inputs), {}); }), Contains("every position"));
}
