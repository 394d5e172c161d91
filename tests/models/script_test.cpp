#include <fstream>

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>
#include <catch2/catch.hpp>
#include <torch/csrc/jit/serialization/import.h>

#include "data/base/error.h"
#include "models/generation/generate.h"
#include "models/registry.h"
#include "models/script/compile.h"
#include "models/script/export.h"
#include "models/script/stack.h"
#include "models/script/verify.h"
#include "tests/support/temporary_directory.h"

using namespace zoo;

namespace {

TransformerConfig tiny() {
  TransformerConfig config;
  config.vocab_size = 29;
  config.hidden_size = 24;
  config.num_layers = 2;
  config.num_heads = 4;
  config.max_positions = 12;
  // Large weights: logits that differ plainly, and norms and biases that would be missed.
  config.initializer_range = 0.7;
  return config;
}

TransformerConfig encoder_config(const std::string& family) {
  TransformerConfig config = tiny();
  config.shape = Shape::kEncoder;
  config.norm_placement = NormPlacement::kPost;
  config.type_vocab_size = family == "distilbert" ? 0 : 2;
  if (family == "roberta") {
    config.position_count = PositionCount::kNotPadding;
    config.pad_token_id = 2;
  }
  if (family == "albert") {
    config.sharing = Sharing::kAllLayers;
    config.embedding_size = 10;
  }
  return config;
}

std::shared_ptr<Model> make(const TransformerConfig& config, const std::string& family = "gpt2",
                            Head head = Head::kCausalLm) {
  auto model = build_model(find_family(family), config, head, /*seed=*/5);
  const at::NoGradGuard no_grad;
  std::uint64_t seed = 1;
  for (auto& parameter : model->named_parameters()) {
    // Zero biases and unit norms would hide a place where they are forgotten.
    if (parameter.value().dim() == 1) {
      at::manual_seed(seed++);
      parameter.value().add_(at::randn_like(parameter.value()), 0.2);
    }
  }
  model->eval();
  return model;
}

// The file of a model, loaded again.
class Exported {
 public:
  explicit Exported(const Model& model, const ScriptOptions& options = {}, const std::string& family = "gpt2",
                    Head head = Head::kCausalLm) {
    export_torchscript(model, find_family(family), head, path(), options);
    module = torch::jit::load(path().string());
  }
  std::filesystem::path path() const { return directory_ / "model.pt"; }

  at::Tensor logits(const at::Tensor& ids, const c10::IValue& mask = {}) {
    return module.forward({ids, mask}).toTensor();
  }

  at::Tensor generate(const at::Tensor& ids, std::int64_t count, double temperature = 0,
                      std::int64_t top_k = 0) {
    return module.get_method("generate")({ids, count, temperature, top_k}).toTensor();
  }

  torch::jit::Module module;

 private:
  test::TemporaryDirectory directory_;
};

at::Tensor some_ids(std::int64_t batch, std::int64_t length) {
  return at::arange(batch * length).mul(11).add(3).remainder(29).view({batch, length});
}

double relative_error(const at::Tensor& found, const at::Tensor& expected) {
  REQUIRE(found.sizes() == expected.sizes());
  const at::Tensor wide = expected.to(at::kDouble);
  return ((found.to(at::kDouble) - wide).abs().max() / wide.abs().max()).item<double>();
}

// Row 0 begins with hidden positions, row 1 ends with them, row 2 hides everything.
at::Tensor ragged_mask(std::int64_t length) {
  at::Tensor mask = at::ones({3, length}, at::kLong);
  mask[0].slice(0, 0, 2).zero_();
  mask[1].slice(0, length - 3).zero_();
  mask[2].zero_();
  return mask;
}

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

// The likeliest next tokens, each from a pass over everything before: no cache.
at::Tensor slow_greedy(Model& model, at::Tensor ids, std::int64_t count) {
  const c10::InferenceMode inference;
  const std::int64_t prompt = ids.size(1);
  for (std::int64_t i = 0; i < count; ++i) {
    const at::Tensor next = model.forward({.input_ids = ids}).logits.select(1, -1).argmax(-1);
    ids = at::cat({ids, next.unsqueeze(1)}, 1);
  }
  return ids.slice(1, prompt);
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

TEST_CASE("a TorchScript file computes what a GPT-2 computes") {
  check(tiny());
}

TEST_CASE("a TorchScript file has no biases where the model has none") {
  TransformerConfig config = tiny();
  config.attention_bias = config.feed_forward_bias = config.norm_bias = false;
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

TEST_CASE("positions that TorchScript has no text for are refused") {
  TransformerConfig config = tiny();
  config.position = PositionKind::kShaw;
  const auto model = make(config);
  CHECK_THROWS_WITH(Exported(*model), Catch::Matchers::Contains("no text for shaw positions"));
}

TEST_CASE("the TorchScript of a decoder with a memory computes what the stack computes") {
  TransformerConfig config = tiny();
  config.cross_attention = true;
  config.norm_placement = GENERATE(NormPlacement::kPre, NormPlacement::kPost);
  config.num_kv_heads = GENERATE(2, 4);
  config.position = PositionKind::kT5Buckets;
  at::manual_seed(6);
  TransformerStack stack(config);
  const at::NoGradGuard no_grad;
  for (at::Tensor& parameter : stack->parameters()) parameter.normal_(0.0, 0.4);
  stack->eval();
  torch::jit::Module module = script::compile(script::stack_part(*stack, config), at::kFloat);
  const at::Tensor x = at::randn({3, 5, 24}), memory = at::randn({3, 9, 24}), mask = ragged_mask(9);
  const at::Tensor expected = stack->forward({.embeddings = x, .memory = memory, .memory_mask = mask}).hidden;
  const auto read = module.get_method("read_memory")({memory});
  c10::List<c10::List<at::Tensor>> none;
  CHECK(relative_error(module.forward({x, c10::IValue(), none, 0, read, mask}).toTensor(), expected) <= 1e-5);
  const auto caches = module.get_method("new_caches")({3, 5, x});
  const at::Tensor first = x.slice(1, 0, 2), second = x.slice(1, 2);
  const at::Tensor pieces =
      at::cat({module.forward({first, c10::IValue(), caches, 0, read, mask}).toTensor(),
               module.forward({second, c10::IValue(), caches, 2, read, mask}).toTensor()},
              1);
  CHECK(relative_error(pieces, expected) <= 1e-5);
}

TEST_CASE("verifying a TorchScript file of an encoder-decoder compares logits and greedy ids") {
  TransformerConfig config = find_preset("t5-tiny").preset.config;
  config.vocab_size = 40;
  const auto& family = find_family("t5");
  const auto model = build_model(family, config, Head::kSeq2SeqLm, 8);
  model->eval();
  const test::TemporaryDirectory directory;
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
                               Activation::kGeGlu, Activation::kReGlu);
  config.intermediate_size = 20;
  check(config);
}

TEST_CASE("a TorchScript file computes each norm in each place") {
  TransformerConfig config = tiny();
  config.norm = GENERATE(NormKind::kLayerNorm, NormKind::kRmsNorm);
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
  const auto model = make(tiny());
  Exported exported(*model, {.dtype = at::kBFloat16});
  const c10::InferenceMode inference;
  const at::Tensor found = exported.logits(some_ids(2, 7));
  CHECK(found.scalar_type() == at::kBFloat16);
  const double error = relative_error(found, model->forward({.input_ids = some_ids(2, 7)}).logits);
  CHECK(error < 0.05);
  CHECK(error > 1e-4);
}

TEST_CASE("a TorchScript file slides its context as tzoo's own generation does") {
  const auto model = make(tiny());
  Exported exported(*model);
  const at::Tensor prompt = some_ids(1, 4);
  GenerationOptions options{.max_new_tokens = 40, .sampling = {.temperature = 0}};
  const auto* first = prompt.const_data_ptr<std::int64_t>();
  const auto expected = generate(*model, {{first, first + 4}}, options).ids[0];
  CHECK(exported.generate(prompt, 40).equal(at::tensor(expected).unsqueeze(0)));
}

TEST_CASE("a row of a TorchScript file's generation ends with an end token and is filled") {
  const auto model = make(tiny());
  const at::Tensor prompt = some_ids(2, 4), all = slow_greedy(*model, prompt, 8);
  // An end token for the first row alone, somewhere in its middle.
  std::int64_t length = 2;
  const auto ends_once = [&] {
    const at::Tensor id = all[0][length - 1];
    return !all[0].slice(0, 0, length - 1).eq(id).any().item<bool>() && !all[1].eq(id).any().item<bool>();
  };
  while (length < 7 && !ends_once()) ++length;
  REQUIRE(ends_once());
  const auto end = all[0][length - 1].item<std::int64_t>();

  Exported exported(*model, {.eos_ids = {28, end}, .pad_id = 27});
  const at::Tensor found = exported.generate(prompt, 8);
  CHECK(found[1].equal(all[1]));
  CHECK(found[0].slice(0, 0, length).equal(all[0].slice(0, 0, length)));
  CHECK(found[0].slice(0, length).equal(at::full({8 - length}, 27, at::kLong)));
  SECTION("and when every row has ended, nothing more is computed") {
    CHECK(exported.generate(prompt.slice(0, 0, 1), 8).sizes() == at::IntArrayRef({1, length}));
  }
  SECTION("without a pad id it is filled with the first end token") {
    Exported other(*model, {.eos_ids = {end}});
    CHECK(other.generate(prompt, 8)[0].slice(0, length - 1).eq(end).all().item<bool>());
  }
}

TEST_CASE("a TorchScript file samples among the top k by their probabilities") {
  const auto model = make(tiny());
  Exported exported(*model);
  const at::Tensor prompt = some_ids(1, 4).expand({2000, 4}).contiguous();
  const c10::InferenceMode inference;
  const at::Tensor logits = model->forward({.input_ids = prompt.slice(0, 0, 1)}).logits[0][-1];
  const double temperature = 2.0;
  const auto [values, best] = (logits / temperature).topk(3);
  const at::Tensor expected = values.softmax(-1);
  at::manual_seed(3);
  const at::Tensor drawn = exported.generate(prompt, 1, temperature, 3);
  std::int64_t among = 0;
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto times = drawn.eq(best[i].item<std::int64_t>()).sum().item<std::int64_t>();
    among += times;
    // Four standard deviations of 2000 draws are at most 0.045.
    CHECK(static_cast<double>(times) / 2000 == Approx(expected[i].item<double>()).margin(0.045));
  }
  CHECK(among == 2000);
  CHECK(exported.generate(prompt.slice(0, 0, 2), 3, temperature, 1)
            .equal(slow_greedy(*model, prompt.slice(0, 0, 2), 3)));
}

TEST_CASE("a TorchScript file says what is wrong with what it is given") {
  const auto model = make(tiny());
  Exported exported(*model);
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(exported.logits(some_ids(1, 13)),
                    Contains("a sequence of 13 tokens is longer than the model's 12"));
  CHECK_THROWS_WITH(exported.generate(some_ids(1, 13), 1),
                    Contains("a prompt of 13 tokens is longer than the model's"));
  CHECK_THROWS_WITH(exported.generate(some_ids(1, 2), -1),
                    Contains("max_new_tokens must be at least 0, got -1"));
  CHECK_THROWS_WITH(exported.generate(some_ids(1, 2), 1, -0.5),
                    Contains("temperature must be at least 0, got -0.5"));
  CHECK_THROWS_WITH(exported.generate(some_ids(1, 2), 1, 1, -3),
                    Contains("top_k must be at least 0, got -3"));
  CHECK_THROWS_WITH(exported.logits(some_ids(1, 2), at::ones({1, 3})),
                    Contains("attention_mask must be [batch, 2]"));
  CHECK_THROWS_WITH(exported.logits(at::arange(3)), Contains("input_ids must be [batch, length]"));
  CHECK(exported.generate(some_ids(2, 3), 0).sizes() == at::IntArrayRef({2, 0}));
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
  CHECK_THROWS_WITH(verify_torchscript(exported.path(), *model), Catch::Matchers::Contains("model.pt"));
}

TEST_CASE("a TorchScript file that cannot be written leaves nothing behind") {
  const test::TemporaryDirectory directory;
  const auto model = make(tiny());
  const auto& family = find_family("gpt2");
  CHECK_THROWS_AS(export_torchscript(*model, family, Head::kCausalLm, directory / "no/model.pt", {}), Error);
  CHECK_THROWS_WITH(export_torchscript(*model, family, Head::kMaskedLm, directory / "model.pt", {}),
                    Catch::Matchers::Contains("gpt2 has no masked-lm head"));
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("a TorchScript file of an encoder computes what each of its heads computes") {
  for (const char* name : {"bert", "roberta", "distilbert", "albert", "gpt2"}) {
    for (const auto& entry : find_family(name).heads) {
      CAPTURE(name, entry.architecture);
      TransformerConfig config = find_family(name).model_type == "gpt2" ? tiny() : encoder_config(name);
      if (entry.head != Head::kQuestionAnswering) config.num_labels = 3;
      config.tie_word_embeddings = entry.architecture.find("PreTraining") == std::string::npos;
      config.pad_token_id = 2;
      const auto model = make(config, name, entry.head);
      Exported exported(*model, {}, name, entry.head);
      const VerifyReport report = verify_torchscript(exported.path(), *model);
      CHECK(report.largest_error() <= 1e-5);
      CHECK(report.logits.size() == 3);
      CHECK((report.greedy_tokens > 0) == (entry.head == Head::kCausalLm));
      CHECK(report.good());
      if (config.shape == Shape::kEncoder && name != std::string("bert")) continue;
      const at::NoGradGuard no_grad;
      for (auto& parameter : model->named_parameters()) {
        if (parameter.key().ends_with("out.weight"))
          parameter.value().add_(at::randn_like(parameter.value()));
      }
      CHECK_FALSE(verify_torchscript(exported.path(), *model).good());
    }
  }
}

TEST_CASE("a TorchScript file of an encoder takes token types behind the mask") {
  const TransformerConfig config = encoder_config("bert");
  const auto model = make(config, "bert", Head::kTokenClassification);
  Exported exported(*model, {}, "bert", Head::kTokenClassification);
  const c10::InferenceMode inference;
  const at::Tensor ids = some_ids(3, 9), mask = ragged_mask(9), types = ids.remainder(2);
  const at::Tensor expected =
      model->forward({.input_ids = ids, .attention_mask = mask, .token_type_ids = types}).logits;
  CHECK(relative_error(exported.module.forward({ids, mask, types}).toTensor(), expected) <= 1e-5);
  CHECK(relative_error(exported.logits(ids, mask), expected) > 1e-3);
}

TEST_CASE("a TorchScript file that classifies needs to know what padding is") {
  TransformerConfig config = tiny();
  const auto model = make(config, "gpt2", Head::kSequenceClassification);
  Exported exported(*model, {}, "gpt2", Head::kSequenceClassification);
  CHECK(exported.logits(some_ids(1, 5)).sizes() == at::IntArrayRef({1, 2}));
  CHECK_THROWS_WITH(exported.logits(some_ids(2, 5)), Catch::Matchers::Contains("pad_token_id"));
  CHECK(verify_torchscript(exported.path(), *model).good());
}
