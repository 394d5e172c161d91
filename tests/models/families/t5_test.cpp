#include <cmath>

#include <nlohmann/json.hpp>
#include <torch/optim/adamw.h>

#include "data/base/atomic_file.h"
#include "data/base/json.h"
#include "models/checkpoint/checkpoint.h"
#include "models/generation/generate.h"
#include "models/layers/attention/key_value_cache.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

using namespace zoo;
using Catch::Contains;
using zoo::test::relative_error;

namespace {

TransformerConfig small_t5() {
  TransformerConfig config = find_preset("t5-small").preset.config;
  config.vocab_size = 13;
  config.hidden_size = 12;
  config.num_layers = 2;
  config.num_decoder_layers = 3;
  config.num_heads = 2;
  config.head_dim = 5;
  config.intermediate_size = 20;
  config.relative_buckets = 8;
  config.relative_max_distance = 10;
  config.logits_scale = 0;
  return config;
}

std::shared_ptr<Model> random_t5(const TransformerConfig& config, std::uint64_t seed, double spread = 0.4) {
  auto model = build_model(find_family("t5"), config, Head::kSeq2SeqLm, seed);
  const at::NoGradGuard no_grad;
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  for (at::Tensor& parameter : model->parameters()) parameter.normal_(0.0, spread, generator);
  model->eval();
  return model;
}

TransformerConfig read_t5(const nlohmann::json& changes) {
  nlohmann::json json{{"vocab_size", 32}, {"d_model", 16}, {"d_ff", 24}, {"num_layers", 2}, {"num_heads", 4}};
  if (!changes.is_null()) json.update(changes);  // {} is null
  return find_family("t5").read_config(json, "config.json");
}

std::string fault(const ModelInputs& inputs) {
  const auto model = random_t5(small_t5(), 3);
  return test::c10_error_of([&] { model->forward(inputs); });
}

}  // namespace

TEST_CASE("labels are shifted right after the start token, with padding for ignored ones") {
  TransformerConfig config = small_t5();
  config.decoder_start_token_id = 3;
  config.pad_token_id = 5;
  const auto model = random_t5(config, 1);
  const at::NoGradGuard no_grad;
  const at::Tensor ids = test::random_ids(config, 1, 4, 2);
  const at::Tensor labels = at::tensor({7, -100, 9, 2}, at::kLong).unsqueeze(0);
  const ModelOutput shifted = model->forward({.input_ids = ids, .labels = labels});
  const at::Tensor decoder_ids = at::tensor({3, 7, 5, 9}, at::kLong).unsqueeze(0);
  const ModelOutput given = model->forward({.input_ids = ids, .decoder_input_ids = decoder_ids});
  CHECK(at::equal(shifted.logits, given.logits));
  const at::Tensor chances = given.logits[0].log_softmax(-1);
  const double expected = -(chances[0][7] + chances[2][9] + chances[3][2]).item<double>() / 3;
  CHECK(shifted.loss.item<double>() == Approx(expected).epsilon(1e-5));
}

TEST_CASE("the hidden state is scaled before a tied projection") {
  TransformerConfig config = small_t5();
  const auto scaled = random_t5(config, 4);
  config.logits_scale = 1.0;
  const auto plain = random_t5(config, 4);
  const at::NoGradGuard no_grad;
  const ModelInputs inputs{.input_ids = test::random_ids(config, 2, 4, 5),
                           .decoder_input_ids = test::random_ids(config, 2, 3, 6)};
  CHECK(relative_error(scaled->forward(inputs).logits, plain->forward(inputs).logits / std::sqrt(12.0)) <
        1e-6);
}

TEST_CASE("a T5 that is given its memory needs no encoder, and with the cache gives the same logits") {
  const TransformerConfig config = small_t5();
  const auto model = random_t5(config, 7);
  const at::NoGradGuard no_grad;
  const at::Tensor ids = test::random_ids(config, 2, 6, 8), target = test::random_ids(config, 2, 5, 9);
  at::Tensor mask = at::ones({2, 6}, at::kLong);
  mask[0].slice(0, 4).zero_();
  const ModelOutput whole =
      model->forward({.input_ids = ids, .attention_mask = mask, .decoder_input_ids = target});
  KeyValueCache cache(config, 2, 5, at::TensorOptions());
  for (std::int64_t t = 0; t < 5; ++t) {
    const at::Tensor step = model
                                ->forward({.attention_mask = mask,
                                           .decoder_input_ids = target.slice(1, t, t + 1),
                                           .memory = whole.encoder_last_hidden_state,
                                           .cache = &cache,
                                           .last_logits_only = true})
                                .logits;
    CHECK(relative_error(step, whole.logits.slice(1, t, t + 1)) < 1e-5);
  }
}

TEST_CASE("a T5 learns to repeat what it reads") {
  TransformerConfig config = small_t5();
  config.hidden_size = 32;
  config.head_dim = 16;
  config.dropout = config.attention_dropout = config.embedding_dropout = 0;
  config.activation_dropout = config.final_dropout = 0;
  config.logits_scale = 0;
  const auto model = build_model(find_family("t5"), config, Head::kSeq2SeqLm, 10);
  model->train();
  const at::Tensor ids = test::random_ids(config, 8, 5, 11);
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(5e-3).weight_decay(0.0));
  double loss = 0;
  for (int step = 0; step < 400; ++step) {
    optimizer.zero_grad();
    const at::Tensor now = model->forward({.input_ids = ids, .labels = ids}).loss;
    now.backward();
    optimizer.step();
    loss = now.item<double>();
  }
  CHECK(loss < 0.05);
  const auto* first = ids.const_data_ptr<std::int64_t>();
  const TokenIds prompt(first, first + 5);
  GenerationOptions options{.max_new_tokens = 5, .sampling = {.temperature = 0}};
  CHECK(generate(*model, {prompt}, options).ids[0] == prompt);
}

TEST_CASE("what a T5 is given must fit") {
  const at::Tensor ids = test::random_ids(small_t5(), 2, 4, 12);
  CHECK_THAT(fault({.decoder_input_ids = ids}), Contains("input_ids must be [batch, length]"));
  CHECK_THAT(fault({.input_ids = ids}), Contains("decoder_input_ids must be [batch, length]"));
  CHECK_THAT(fault({.input_ids = ids, .decoder_input_ids = ids, .labels = ids.slice(1, 1)}),
             Contains("labels must be [2, 4]") && Contains("[2, 3]"));
  CHECK_THAT(fault({.input_ids = ids, .attention_mask = at::ones({2, 3}), .decoder_input_ids = ids}),
             Contains("[batch, 4], got [2, 3]"));
  TransformerConfig config = small_t5();
  config.decoder_start_token_id = -1;
  const auto model = random_t5(config, 13);
  CHECK_THAT(test::c10_error_of([&] { model->forward({.input_ids = ids, .labels = ids}); }),
             Contains("decoder_start_token_id"));
  CHECK_THAT(test::error_of([&] { generate(*model, {{1}}, {.max_new_tokens = 1}); }),
             Contains("decoder_start_token_id"));
}

TEST_CASE("tying and scaling are read as release 4 and as release 5 say them") {
  const double scale = 1 / std::sqrt(16.0);
  const auto check = [](const nlohmann::json& changes, bool tied, double expected) {
    CAPTURE(changes.dump());
    CHECK(read_t5(changes).tie_word_embeddings == tied);
    CHECK(read_t5(changes).output_scale() == expected);
  };
  check({}, true, scale);
  check({{"tie_word_embeddings", true}}, true, scale);
  check({{"tie_word_embeddings", false}}, false, 1.0);
  check({{"tie_word_embeddings", true}, {"scale_decoder_outputs", false}}, true, 1.0);
  check({{"tie_word_embeddings", false}, {"scale_decoder_outputs", true}}, false, scale);
}

TEST_CASE("every way to tie and to scale survives a checkpoint") {
  TransformerConfig config = small_t5();
  config.tie_word_embeddings = GENERATE(true, false);
  config.logits_scale = GENERATE(1.0, 0.0);
  const auto model = random_t5(config, 14);
  const test::TemporaryDirectory directory;
  save_model(*model, find_family("t5"), Head::kSeq2SeqLm, directory.path());
  const LoadedModel loaded = load_model(directory.path());
  CHECK(loaded.model->config().tie_word_embeddings == config.tie_word_embeddings);
  CHECK(loaded.model->config().logits_scale == config.logits_scale);
  CHECK(loaded.model->config().num_decoder_layers == 3);
  const at::NoGradGuard no_grad;
  const ModelInputs inputs{.input_ids = test::random_ids(config, 1, 4, 15),
                           .decoder_input_ids = test::random_ids(config, 1, 3, 16)};
  CHECK(at::equal(loaded.model->forward(inputs).logits, model->forward(inputs).logits));
}

TEST_CASE("without a projection in the file, the embedding is it, whatever tie_word_embeddings says") {
  const auto model = random_t5(small_t5(), 18);
  const test::TemporaryDirectory directory;
  save_model(*model, find_family("t5"), Head::kSeq2SeqLm, directory.path());
  nlohmann::json config = read_json(directory / "config.json");
  config["tie_word_embeddings"] = false;
  write_file(directory / "config.json", config.dump());
  CHECK(load_model(directory.path()).model->config().tie_word_embeddings);
}

TEST_CASE("a projection beside the embedding is one of its own unless the two are equal") {
  const auto model = random_t5(small_t5(), 17);
  const test::TemporaryDirectory directory;
  save_model(*model, find_family("t5"), Head::kSeq2SeqLm, directory.path());
  NamedTensors tensors = export_weights(*model, find_family("t5").weight_table(small_t5()));
  const at::Tensor shared = model->named_parameters()["embeddings.token.weight"].detach();
  // Copies, as old checkpoints hold them.
  for (const char* name : {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"}) {
    tensors.emplace_back(name, shared.clone());
  }
  write_safetensors(directory / "model.safetensors", tensors);
  CHECK(load_model(directory.path()).model->config().tie_word_embeddings);
  tensors.back().second = shared + 1;
  write_safetensors(directory / "model.safetensors", tensors);
  const LoadedModel untied = load_model(directory.path());
  CHECK_FALSE(untied.model->config().tie_word_embeddings);
  CHECK(at::equal(untied.model->named_parameters()["lm_head.weight"], shared + 1));
  // The others have no place of their own.
  tensors[tensors.size() - 2].second = shared + 2;
  write_safetensors(directory / "model.safetensors", tensors);
  CHECK_THAT(test::error_of([&] { load_model(directory.path()); }),
             Contains("decoder.embed_tokens.weight: differs from shared.weight"));
}

TEST_CASE("what a T5's config.json asks for and the zoo does not have is refused by name") {
  const auto refused = [](const nlohmann::json& changes) {
    return test::error_of([&] { read_t5(changes); });
  };
  CHECK_THAT(refused({{"feed_forward_proj", "gated-mish"}}),
             Contains("'feed_forward_proj' is \"gated-mish\""));
  CHECK_THAT(refused({{"feed_forward_proj", "prelu"}}), Contains("'feed_forward_proj' is \"prelu\""));
  CHECK_THAT(refused({{"dense_act_fn", "xielu"}}), Contains("'dense_act_fn' is \"xielu\""));
  CHECK_THAT(refused({{"dense_act_fn", nullptr}}), Contains("'dense_act_fn' is null"));
  CHECK_THAT(refused({{"num_decoder_layers", 1.5}}), Contains("num_decoder_layers"));
  CHECK(read_t5({{"feed_forward_proj", "gated-gelu"}}).activation == Activation::kGeGluTanh);
  CHECK(read_t5({{"feed_forward_proj", "gated-silu"}}).activation == Activation::kSwiGlu);
  CHECK(read_t5({}).activation == Activation::kRelu);
  CHECK_THAT(refused({{"feed_forward_proj", "mish"}}), Contains("'feed_forward_proj' is \"mish\""));
  // transformers obeys these where they contradict feed_forward_proj.
  CHECK(read_t5({{"dense_act_fn", "gelu"}}).activation == Activation::kGelu);
  CHECK(read_t5({{"feed_forward_proj", "gated-gelu"}, {"dense_act_fn", "gelu"}}).activation ==
        Activation::kGeGlu);
  CHECK(read_t5({{"feed_forward_proj", "gated-silu"}, {"is_gated_act", false}}).activation ==
        Activation::kSilu);
  CHECK(read_t5({{"feed_forward_proj", "gated-silu"}, {"is_gated_act", nullptr}}).activation ==
        Activation::kSilu);
  CHECK(read_t5({{"dense_act_fn", "silu"}, {"is_gated_act", true}}).activation == Activation::kSwiGlu);
  CHECK(read_t5({}).logits_scale == 0.0);
  CHECK(read_t5({{"scale_decoder_outputs", nullptr}}).logits_scale == 1.0);
  CHECK(read_t5({}).decoder_layers() == 2);
  CHECK(read_t5({{"num_decoder_layers", nullptr}}).decoder_layers() == 2);
  CHECK(read_t5({{"num_decoder_layers", 5}}).decoder_layers() == 5);
}

TEST_CASE("fresh T5 weights have the deviations of its paper's code") {
  TransformerConfig config = small_t5();
  config.vocab_size = 600;
  config.hidden_size = 256;
  config.head_dim = 64;
  config.num_heads = 4;
  config.intermediate_size = 512;
  config.relative_buckets = 32;
  config.relative_max_distance = 128;
  config.tie_word_embeddings = false;
  const auto model = build_model(find_family("t5"), config, Head::kSeq2SeqLm, 18);
  const auto parameters = model->named_parameters();
  const auto check = [&](const std::string& name, std::int64_t from, std::int64_t to, double expected) {
    CAPTURE(name);
    const at::Tensor value = parameters[name].detach().slice(0, from, to);
    const double count = static_cast<double>(value.numel());
    CHECK(std::abs(value.mean().item<double>()) < 5 * expected / std::sqrt(count));
    CHECK(std::abs(value.std().item<double>() - expected) < 5 * expected / std::sqrt(2 * count));
  };
  check("embeddings.token.weight", 0, 600, 1.0);
  check("lm_head.weight", 0, 600, 1.0);
  for (const std::string stack : {"stack.encoder.", "stack.decoder."}) {
    check(stack + "position_bias.weight", 0, 32, 1.0 / 16);
    check(stack + "blocks.1.attention.qkv.weight", 0, 256, 1.0 / 128);  // sqrt(256 * 64)
    check(stack + "blocks.1.attention.qkv.weight", 256, 768, 1.0 / 16);
    check(stack + "blocks.1.attention.out.weight", 0, 256, 1.0 / 16);
    check(stack + "blocks.1.feed_forward.up.weight", 0, 512, 1.0 / 16);
    check(stack + "blocks.1.feed_forward.down.weight", 0, 256, 1 / std::sqrt(512.0));
    CHECK(at::equal(parameters[stack + "final_norm.weight"], at::ones({256})));
  }
  check("stack.decoder.blocks.2.cross_attention.q.weight", 0, 256, 1.0 / 128);
  check("stack.decoder.blocks.2.cross_attention.kv.weight", 0, 512, 1.0 / 16);
}

TEST_CASE(
    "an encoder-decoder's generation equals the likeliest ids of whole passes, alone and in a padded batch") {
  TransformerConfig config = small_t5();
  config.tie_word_embeddings = false;  // tied, a random model likes to repeat itself
  const auto model = random_t5(config, 20, 0.6);
  const std::vector<TokenIds> prompts{{5, 9, 2}, {1, 2, 3, 4, 6, 7, 8, 11}, {12}};
  GenerationOptions options{.max_new_tokens = 9, .sampling = {.temperature = 0}};
  const auto together = generate(*model, prompts, options).ids;
  const at::NoGradGuard no_grad;
  std::set<TokenId> different;
  for (std::size_t row = 0; row < prompts.size(); ++row) {
    TokenIds target{0};
    for (int i = 0; i < 9; ++i) {
      const at::Tensor logits =
          model
              ->forward({.input_ids = at::tensor(prompts[row], at::kLong).unsqueeze(0),
                         .decoder_input_ids = at::tensor(target, at::kLong).unsqueeze(0)})
              .logits;
      target.push_back(logits[0][-1].argmax().item<TokenId>());
      different.insert(target.back());
    }
    target.erase(target.begin());
    CHECK(together[row] == target);
    CHECK(generate(*model, {prompts[row]}, options).ids[0] == target);
  }
  CHECK(different.size() > 3);  // a model that repeats one token would agree with any cache
  options.eos_token_ids = {together[1][2]};
  const auto ended = generate(*model, prompts, options).ids;
  CHECK(ended[1].size() <= 3);
  CHECK(ended[1].back() == together[1][2]);
}
