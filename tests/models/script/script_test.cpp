#include <fstream>

#include "data/base/error.h"
#include "models/script/verify.h"
#include "tests/models/script/script_support.h"

using namespace zoo;
using namespace zoo::test;

namespace {

void check_logits(const TransformerConfig& config) {
  const auto model = make(config);
  Exported exported(*model);
  const c10::InferenceMode inference;
  for (const auto& [batch, length] : {std::pair{1, 1}, {2, 7}, {3, 12}}) {
    const at::Tensor ids = some_ids(batch, length);
    CHECK(relative_error(exported.logits(ids), model->forward({.input_ids = ids}).logits) <= 1e-5);
  }
  const at::Tensor ids = some_ids(3, 9), mask = ragged_mask(9);
  const at::Tensor expected = model->forward({.input_ids = ids, .attention_mask = mask}).logits;
  CHECK(relative_error(exported.logits(ids, mask), expected) <= 1e-5);
}

void check_greedy(const TransformerConfig& config) {
  const auto model = make(config);
  Exported exported(*model);
  const at::Tensor prompt = some_ids(2, 4), expected = slow_greedy(*model, prompt, 8);
  // A model that repeats one token would agree with any cache.
  REQUIRE(expected.ne(expected.select(1, 0).unsqueeze(1)).any().item<bool>());
  CHECK(exported.generate(prompt, 8).equal(expected));
}

void check(const TransformerConfig& config) {
  check_logits(config);
  check_greedy(config);
}

}  // namespace

TEST_CASE("a TorchScript file computes what a GPT-2 computes") { check(tiny()); }

TEST_CASE("a TorchScript file has no biases where the model has none") {
  TransformerConfig config = tiny();
  config.qkv_bias = config.attention_output_bias = config.feed_forward_bias = config.norm_bias = false;
  check(config);
}

TEST_CASE("a TorchScript file keeps an output projection of its own") {
  TransformerConfig config = tiny();
  config.tie_word_embeddings = false;
  check(config);
}

TEST_CASE("a TorchScript file computes each kind of position") {
  TransformerConfig config = tiny();
  config.position = GENERATE(PositionKind::kNone, PositionKind::kSinusoidal, PositionKind::kRotary,
                             PositionKind::kT5Buckets, PositionKind::kAlibi);
  config.rope_theta = 500.0;
  config.relative_buckets = 6;
  config.relative_max_distance = 9;
  check(config);
}

TEST_CASE("a TorchScript file of a younger form computes what the modules compute") {
  std::size_t form = 0;
  for (const TransformerConfig& config : younger_forms(tiny())) {
    CAPTURE(form++);
    if (config.rope_scaling.depends_on_length()) {
      CHECK_THROWS_WITH(Exported(*make(config)), Catch::Contains("positions that depend on a text's length"));
    } else {
      check(config);
    }
  }
}

TEST_CASE("a TorchScript file scales rotary positions") {
  TransformerConfig config = tiny();
  config.position = PositionKind::kRotary;
  config.rope_scaling = {.kind = GENERATE(RopeScalingKind::kLinear, RopeScalingKind::kLlama3),
                         .factor = 4.0,
                         .low_frequency_factor = 1.0,
                         .high_frequency_factor = 2.0,
                         .original_max_positions = 8};
  check(config);
}

TEST_CASE("a TorchScript file keeps a scale of the scores") {
  TransformerConfig config = tiny();
  config.attention_scale = 0.2;
  check(config);
}

TEST_CASE("a TorchScript file has Shaw's positions") {
  TransformerConfig config = tiny();
  config.position = PositionKind::kShaw;
  config.relative_max_distance = 3;
  check(config);
}

TEST_CASE("heads of encoder-decoders that no program can hold are refused") {
  TransformerConfig config = find_preset("bart-base").preset.config;
  config.vocab_size = config.hidden_size = config.intermediate_size = 24;
  config.num_layers = config.num_decoder_layers = 1;
  for (const auto& [head, part] : {std::pair{Head::kSequenceClassification, "classifier"},
                                   {Head::kQuestionAnswering, "question-answering head"}}) {
    const auto model = random_model("bart", config, head, 1);
    CHECK_THROWS_WITH(Exported(*model), Catch::Contains(std::string("encoder-decoder's ") + part));
  }
}

TEST_CASE("verifying a TorchScript file of an encoder-decoder compares logits and greedy ids") {
  TransformerConfig config = find_preset("t5-tiny").preset.config;
  config.vocab_size = 40;
  const auto& family = find_family("t5");
  const auto model = build_model(family, config, Head::kSeq2SeqLm, 8);
  model->eval();
  const TemporaryDirectory directory;
  const std::filesystem::path path = directory / "t5.pt";
  export_torchscript(*model, family, Head::kSeq2SeqLm, path, {});
  const VerifyReport report = verify_torchscript(path, *model);
  CHECK(report.good());
  CHECK(report.logits.size() == 3);
  CHECK(report.greedy_tokens == 32);
  const at::NoGradGuard no_grad;
  model->named_parameters()["stack.decoder.blocks.0.cross_attention.q.weight"].mul_(1.5);
  CHECK_FALSE(verify_torchscript(path, *model).good());
}

TEST_CASE("a TorchScript file computes each activation") {
  TransformerConfig config = tiny();
  config.activation = GENERATE(Activation::kRelu, Activation::kGelu, Activation::kSilu, Activation::kSwiGlu,
                               Activation::kGeGlu, Activation::kReGlu, Activation::kGeGluTanh,
                               Activation::kTanh, Activation::kRelu2);
  config.intermediate_size = 20;
  check(config);
}

TEST_CASE("a TorchScript file computes each norm in each place") {
  TransformerConfig config = tiny();
  config.norm = GENERATE(NormKind::kLayerNorm, NormKind::kRmsNorm, NormKind::kPlainRmsNorm);
  config.norm_placement = GENERATE(NormPlacement::kPre, NormPlacement::kPost);
  config.layer_norm_eps = 0.01;
  check(config);
}

TEST_CASE("a TorchScript file groups key and value heads and takes any head size") {
  TransformerConfig config = tiny();
  config.position = PositionKind::kRotary;
  config.num_kv_heads = GENERATE(1, 2);
  config.head_dim = 10;
  check(config);
}

TEST_CASE("a TorchScript file of bfloat16 gives bfloat16 logits near the model's") {
  const auto model = make(tiny()), rounded = make(tiny());
  rounded->to(at::kBFloat16);
  Exported exported(*rounded);
  const c10::InferenceMode inference;
  const at::Tensor found = exported.logits(some_ids(2, 7));
  CHECK(found.scalar_type() == at::kBFloat16);
  const double error = relative_error(found, model->forward({.input_ids = some_ids(2, 7)}).logits);
  CHECK(error < 0.05);
  CHECK(error > 1e-4);
}

TEST_CASE("verifying a TorchScript file tells a good one from one of another model") {
  const auto model = make(tiny());
  Exported exported(*model);
  const VerifyReport report = verify_torchscript(exported.path(), *model);
  CHECK(report.good());
  CHECK(report.logits.size() == 3);
  CHECK(report.logits[2].padded);
  CHECK(report.greedy_tokens == 32);

  const at::NoGradGuard no_grad;
  model->parameters()[3][0] += 0.01;
  CHECK_FALSE(verify_torchscript(exported.path(), *model).good());

  std::ofstream(exported.path()) << "no TorchScript";
  CHECK_THROWS_WITH(verify_torchscript(exported.path(), *model), Catch::Contains("model.pt"));
}

TEST_CASE("a TorchScript file that cannot be written leaves no file") {
  const TemporaryDirectory directory;
  const auto model = make(tiny());
  const auto& family = find_family("gpt2");
  CHECK_THROWS_AS(export_torchscript(*model, family, Head::kCausalLm, directory / "no/model.pt", {}), Error);
  CHECK_THROWS_WITH(export_torchscript(*model, family, Head::kMaskedLm, directory / "model.pt", {}),
                    Catch::Contains("gpt2 has no masked-lm head"));
  CHECK(std::filesystem::is_empty(directory.path()));
}
