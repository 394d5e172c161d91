#include <set>

#include <nlohmann/json.hpp>

#include "data/base/json.h"
#include "models/checkpoint/checkpoint.h"
#include "tests/models/checkpoint/checkpoint_support.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

using namespace zoo;
using zoo::test::Checkpoint;

namespace {

std::map<std::string, at::Tensor> weights_of(const Model& model) {
  std::map<std::string, at::Tensor> weights;
  for (const auto& item : model.named_parameters()) weights.emplace(item.key(), item.value().detach());
  return weights;
}

void check_same_bits(const Model& a, const Model& b) {
  const auto first = weights_of(a), second = weights_of(b);
  REQUIRE(first.size() == second.size());
  for (const auto& [name, tensor] : first) {
    CAPTURE(name);
    REQUIRE(second.count(name) == 1);
    CHECK(at::equal(tensor, second.at(name)));
  }
}

}  // namespace

TEST_CASE("a saved model loads bit for bit, configuration and all") {
  TransformerConfig config = test::small_config();
  config.tie_word_embeddings = GENERATE(true, false);
  config.activation =
      GENERATE(Activation::kGeluTanh, Activation::kGelu, Activation::kRelu, Activation::kSilu);
  const bool biased = GENERATE(true, false);
  config.qkv_bias = config.attention_output_bias = config.feed_forward_bias = config.norm_bias = biased;
  config.dropout = 0.125;
  config.attention_dropout = 0.25;
  config.embedding_dropout = 0.375;
  config.layer_norm_eps = 1e-3;
  config.initializer_range = 0.05;
  const auto model = test::random_gpt(config, 1);
  const test::TemporaryDirectory directory;
  save_model(*model, find_family("gpt2"), Head::kCausalLm, directory.path());
  const bool trainable = GENERATE(true, false);
  const LoadedModel loaded = load_model(directory.path(), {.trainable = trainable});
  CHECK(loaded.head == Head::kCausalLm);
  CHECK(loaded.family->model_type == "gpt2");
  CHECK_FALSE(loaded.model->is_training());
  check_same_bits(*model, *loaded.model);
  const TransformerConfig& read = loaded.model->config();
  CHECK(read.activation == config.activation);
  CHECK(read.qkv_bias == biased);
  CHECK(read.attention_output_bias == biased);
  CHECK(read.feed_forward_bias == biased);
  CHECK(read.norm_bias == biased);
  CHECK(read.intermediate_size == 20);
  CHECK(read.dropout == 0.125);
  CHECK(read.attention_dropout == 0.25);
  CHECK(read.embedding_dropout == 0.375);
  CHECK(read.layer_norm_eps == 1e-3);
  CHECK(read.initializer_range == 0.05);
  const at::NoGradGuard no_grad;
  const at::Tensor ids = test::random_ids(config, 2, 6, 2);
  CHECK(test::relative_error(loaded.model->forward({.input_ids = ids}).logits,
                             model->forward({.input_ids = ids}).logits) < 1e-6);
}

TEST_CASE("config.json of a saved model says what transformers would otherwise guess") {
  const test::TemporaryDirectory directory;
  const auto model = test::random_gpt(test::small_config(), 3);
  save_model(*model, find_family("gpt2"), Head::kCausalLm, directory.path(), {.eos_token_id = 4});
  const nlohmann::json config = read_json(directory / "config.json");
  CHECK(config.at("model_type") == "gpt2");
  CHECK(config.at("architectures") == nlohmann::json{"GPT2LMHeadModel"});
  CHECK(config.at("eos_token_id") == 4);
  CHECK(config.at("bos_token_id").is_null());
  CHECK(config.at("dtype") == "float32");
  CHECK(read_json(directory / "generation_config.json").at("eos_token_id") == 4);
}

TEST_CASE("a model is saved in the type asked for and loads in any") {
  const auto model = test::random_gpt(test::small_config(), 4);
  const at::ScalarType stored = GENERATE(at::kFloat, at::kBFloat16, at::kHalf);
  const test::TemporaryDirectory directory;
  save_model(*model, find_family("gpt2"), Head::kCausalLm, directory.path(), {.dtype = stored});
  CHECK(SafetensorsFile(directory / "model.safetensors").entry("transformer.wte.weight").dtype == stored);
  for (const at::ScalarType wanted : {at::kFloat, at::kBFloat16, at::kHalf}) {
    const LoadedModel loaded = load_model(directory.path(), {.dtype = wanted});
    const auto expected = weights_of(*model);
    for (const auto& [name, tensor] : weights_of(*loaded.model)) {
      CAPTURE(name);
      CHECK(tensor.scalar_type() == wanted);
      CHECK(at::equal(tensor, expected.at(name).to(stored).to(wanted)));
    }
  }
}

TEST_CASE("names are read with and without their prefix") {
  Checkpoint checkpoint;
  const auto model = load_model(checkpoint.path()).model;
  for (auto& [name, tensor] : checkpoint.tensors) name.erase(0, std::string("transformer.").size());
  checkpoint.write();
  check_same_bits(*model, *load_model(checkpoint.path()).model);
}

TEST_CASE("a tied copy that is equal is accepted") {
  Checkpoint checkpoint;
  checkpoint.tensors.emplace_back("lm_head.weight", checkpoint.find("transformer.wte.weight").clone());
  checkpoint.write();
  CHECK(checkpoint.report().tied == std::vector<std::string>{"lm_head.weight"});
  CHECK(checkpoint.report().good());
  CHECK_NOTHROW(load_model(checkpoint.path()));
}

TEST_CASE("tensors without numbers are compared at once, however many rows they claim") {
  const test::TemporaryDirectory directory;
  const at::Tensor rows = at::empty({std::int64_t{1} << 60, 0}),
                   others = at::empty({std::int64_t{1} << 59, 0});
  write_safetensors(directory / "model.safetensors", {{"a", rows}, {"b", rows}, {"c", others}});
  const WeightFiles files(directory.path());
  CHECK(files.equal("a", "b"));
  CHECK_FALSE(files.equal("a", "c"));
}

TEST_CASE("the causal masks in old checkpoints are ignored, with and without the prefix") {
  Checkpoint checkpoint;
  checkpoint.tensors.emplace_back("transformer.h.0.attn.bias", at::ones({1, 1, 16, 16}, at::kByte));
  checkpoint.tensors.emplace_back("transformer.h.2.attn.masked_bias", at::tensor({-1e4}));
  checkpoint.write();
  CHECK(checkpoint.report().ignored.size() == 2);
  CHECK_NOTHROW(load_model(checkpoint.path()));
  for (auto& [name, tensor] : checkpoint.tensors) name.erase(0, std::string("transformer.").size());
  checkpoint.write();
  CHECK_NOTHROW(load_model(checkpoint.path()));
  // There are three layers: a mask of a fourth is a tensor without a place.
  checkpoint.tensors.emplace_back("h.3.attn.bias", at::ones({1}));
  checkpoint.write();
  CHECK(checkpoint.report().unexpected == std::vector<std::string>{"h.3.attn.bias"});
}

TEST_CASE("the biases of a model without biases must be absent or zero") {
  TransformerConfig config = test::small_config();
  config.qkv_bias = config.attention_output_bias = config.feed_forward_bias = config.norm_bias = false;
  Checkpoint checkpoint(config);
  CHECK(checkpoint.find("transformer.h.1.mlp.c_fc.bias").count_nonzero().item<int>() == 0);
  CHECK(checkpoint.find("transformer.h.1.mlp.c_fc.bias").sizes() == at::IntArrayRef({20}));
  CHECK(load_model(checkpoint.path()).model->named_parameters().find("stack.blocks.1.feed_forward.up.bias") ==
        nullptr);
  checkpoint.find("transformer.h.1.mlp.c_fc.bias")[3] = 0.5;
  checkpoint.write();
  CHECK_THAT(test::error_of([&] { load_model(checkpoint.path()); }),
             Catch::Contains("transformer.h.1.mlp.c_fc.bias: expected zeros"));
  checkpoint.remove_if([](const std::string& name) { return name.ends_with(".bias"); });
  checkpoint.write();
  CHECK_NOTHROW(load_model(checkpoint.path()));
}

TEST_CASE("shards are read by their index") {
  Checkpoint checkpoint;
  const auto model = load_model(checkpoint.path()).model;
  checkpoint.write_shards(3);
  check_same_bits(*model, *load_model(checkpoint.path()).model);
  const WeightFiles files(checkpoint.path());
  CHECK(files.names().size() == checkpoint.tensors.size());
  std::int64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint.path())) {
    if (entry.path().extension() == ".safetensors") bytes += static_cast<std::int64_t>(entry.file_size());
  }
  CHECK(files.bytes() == bytes);
}

TEST_CASE("a save over shards leaves none, and no index that names them") {
  test::Checkpoint checkpoint;
  checkpoint.write_shards(3);
  write_file(checkpoint.path() / "model-of-mine.safetensors.txt", "kept");
  const auto model = test::random_gpt(test::small_config(), 5);
  save_model(*model, find_family("gpt2"), Head::kCausalLm, checkpoint.path());
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint.path()))
    names.insert(entry.path().filename().string());
  CHECK(names == std::set<std::string>{"config.json", "generation_config.json",
                                       "model-of-mine.safetensors.txt", "model.safetensors"});
}

TEST_CASE("weights to be trained have contiguous memory of their own") {
  Checkpoint checkpoint;
  const at::ScalarType stored = GENERATE(at::kFloat, at::kHalf);
  for (auto& [name, tensor] : checkpoint.tensors) tensor = tensor.to(stored);
  checkpoint.write();
  const auto model = load_model(checkpoint.path(), {.trainable = true}).model;
  for (const auto& item : model->named_parameters()) {
    CAPTURE(item.key());
    const at::Tensor& tensor = item.value();
    CHECK(tensor.is_contiguous());
    CHECK(tensor.requires_grad());
    CHECK(tensor.storage().nbytes() == tensor.nbytes());
    CHECK(tensor.storage().resizable());  // of the allocator, where a file's is not
  }
}

TEST_CASE("weights to be used only stay in the mapped file where their type fits") {
  const Checkpoint checkpoint;
  const auto model = load_model(checkpoint.path()).model;
  const auto parameters = model->named_parameters();
  // Every weight lies in the one mapping: no two are further apart than the file is long.
  std::vector<const char*> addresses;
  for (const auto& item : parameters) {
    CAPTURE(item.key());
    CHECK_FALSE(item.value().storage().resizable());
    addresses.push_back(static_cast<const char*>(item.value().const_data_ptr()));
  }
  const auto [low, high] = std::minmax_element(addresses.begin(), addresses.end());
  const auto size = static_cast<std::ptrdiff_t>(file_size(checkpoint.path() / "model.safetensors"));
  CHECK(*high - *low < size);
  // GPT-2's matrices are kept as [in, out]: a view turned over, not a copy.
  CHECK_FALSE(parameters["stack.blocks.0.attention.qkv.weight"].is_contiguous());
  CHECK(parameters["stack.blocks.0.attention.qkv.weight"].t().is_contiguous());
}
