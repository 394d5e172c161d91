#include <cmath>

#include <nlohmann/json.hpp>

#include "models/checkpoint/checkpoint.h"
#include "models/layers/attention/key_value_cache.h"
#include "models/layers/attention/masks.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;
using Catch::Contains;
using zoo::test::relative_error;

namespace {

TransformerConfig small_llama() {
  TransformerConfig config = find_preset("llama-tiny").preset.config;
  config.vocab_size = 13;
  config.hidden_size = 12;
  config.num_layers = 2;
  config.num_heads = 2;
  config.num_kv_heads = 1;
  config.intermediate_size = 20;
  config.max_positions = 16;
  return config;
}

std::shared_ptr<Model> random_llama(const TransformerConfig& config, std::uint64_t seed) {
  return test::random_model("llama", config, Head::kCausalLm, seed);
}

nlohmann::json whole_config() {
  return {{"vocab_size", 32},         {"hidden_size", 16},       {"num_hidden_layers", 2},
          {"num_attention_heads", 4}, {"intermediate_size", 24}, {"max_position_embeddings", 64}};
}

TransformerConfig read_llama(const nlohmann::json& json) {
  return find_family("llama").read_config(json, "config.json");
}

std::string fault(const nlohmann::json& changes) {
  nlohmann::json json = whole_config();
  if (!changes.is_null()) json.update(changes);  // {} is null
  return test::error_of([&] { read_llama(json); });
}

}  // namespace

TEST_CASE("A Qwen without a size of its window has none") {
  nlohmann::json json = whole_config();
  json.update({{"num_key_value_heads", 4},
               {"use_sliding_window", true},
               {"sliding_window", nullptr},
               {"max_window_layers", 0}});
  for (const char* family : {"qwen2", "qwen3"})
    CHECK(find_family(family).read_config(json, "config.json").sliding_window == 0);
}

TEST_CASE("A quarter of a head rotates where StableLM's and GPT-NeoX's config.json do not say how much") {
  nlohmann::json json = whole_config();
  json.update({{"hidden_size", 32}, {"num_key_value_heads", 4}});
  for (const char* family : {"stablelm", "gpt_neox"})
    CHECK(find_family(family).read_config(json, "config.json").rotary_size() == 2);
}

TEST_CASE("a Llama with the cache gives the logits that it gives without, padded on the left") {
  TransformerConfig config = small_llama();
  config.rope_scaling = {.kind = RopeScalingKind::kLlama3, .factor = 4.0, .original_max_positions = 8};
  const auto model = random_llama(config, 1);
  const at::NoGradGuard no_grad;
  const at::Tensor ids = test::random_ids(config, 2, 8, 7);
  at::Tensor mask = at::ones({2, 8}, at::kLong);
  mask[1].slice(0, 0, 3).zero_();
  const at::Tensor positions = positions_of(mask);
  const at::Tensor whole =
      model->forward({.input_ids = ids, .attention_mask = mask, .position_ids = positions}).logits;
  KeyValueCache cache(config, 2, 8, at::TensorOptions());
  for (const auto& [from, to] : std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 4}, {4, 5}, {5, 8}}) {
    const at::Tensor part = model
                                ->forward({.input_ids = ids.slice(1, from, to),
                                           .attention_mask = mask.slice(1, 0, to),
                                           .position_ids = positions.slice(1, from, to),
                                           .cache = &cache})
                                .logits;
    const at::Tensor comparable = mask.slice(1, from, to).unsqueeze(-1);
    CHECK(relative_error(part * comparable, whole.slice(1, from, to) * comparable) < 1e-5);
  }
}

TEST_CASE("a Llama reads more tokens than max_position_embeddings: rotary positions have no table") {
  const TransformerConfig config = small_llama();
  const auto model = random_llama(config, 2);
  const at::NoGradGuard no_grad;
  CHECK(
      model->forward({.input_ids = test::random_ids(config, 1, 40, 3)}).logits.isfinite().all().item<bool>());
}

TEST_CASE("the rotary base is read wherever transformers wrote it") {
  const auto theta = [](const nlohmann::json& changes) {
    nlohmann::json json = whole_config();
    if (!changes.is_null()) json.update(changes);  // {} is null
    return read_llama(json).rope_theta;
  };
  CHECK(theta({}) == 10000.0);
  CHECK(theta({{"rope_theta", 500.0}}) == 500.0);
  CHECK(theta({{"rope_theta", 500}}) == 500.0);
  CHECK(theta({{"rope_parameters", {{"rope_theta", 700.0}, {"rope_type", "default"}}}}) == 700.0);
  CHECK(theta({{"rope_theta", 500.0}, {"rope_parameters", {{"rope_type", "default"}}}}) == 500.0);
  CHECK(theta({{"rope_theta", 500.0}, {"rope_scaling", nullptr}}) == 500.0);
}

TEST_CASE("the rotary scaling is read in every form and refused by name where it is unknown") {
  const auto scaling = [](const nlohmann::json& changes) {
    nlohmann::json json = whole_config();
    if (!changes.is_null()) json.update(changes);  // {} is null
    return read_llama(json).rope_scaling;
  };
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    for (const char* type : {"type", "rope_type"}) {
      CAPTURE(key, type);
      const RopeScaling linear = scaling({{key, {{type, "linear"}, {"factor", 2.5}}}});
      CHECK(linear.kind == RopeScalingKind::kLinear);
      CHECK(linear.factor == 2.5);
      CHECK_THAT(fault({{key, {{type, "ntk"}, {"factor", 2.0}}}}),
                 Contains(key) && Contains(type) && Contains("ntk") && Contains("llama3"));
      const RopeScaling dynamic = scaling({{key, {{type, "dynamic"}, {"factor", 2.5}}}});
      CHECK(dynamic.kind == RopeScalingKind::kDynamic);
      CHECK(dynamic.original_max_positions == 64);
    }
  }
  nlohmann::json llama3{{"rope_type", "llama3"},
                        {"factor", 8.0},
                        {"low_freq_factor", 1.0},
                        {"high_freq_factor", 4.0},
                        {"original_max_position_embeddings", 32}};
  const RopeScaling read_back = scaling({{"rope_scaling", llama3}});
  CHECK(read_back.kind == RopeScalingKind::kLlama3);
  CHECK(read_back.high_frequency_factor == 4.0);
  CHECK(read_back.original_max_positions == 32);
  llama3.erase("original_max_position_embeddings");  // those of the model then
  CHECK(scaling({{"rope_scaling", llama3}}).original_max_positions == 64);
  llama3.erase("low_freq_factor");
  CHECK_THAT(fault({{"rope_scaling", llama3}}),
             Contains("rope_scaling") && Contains("'low_freq_factor' is missing"));
  CHECK_THAT(fault({{"rope_scaling", {{"type", "linear"}}}}), Contains("'factor' is missing"));
  CHECK_THAT(fault({{"rope_scaling", 3}}), Contains("rope_scaling") && Contains("3") && Contains("object"));
}

TEST_CASE("what a Llama's config.json asks for and the zoo does not have is refused by name") {
  CHECK_THAT(fault({{"sliding_window", 4096}}), Contains("'sliding_window' is 4096"));
  CHECK(fault({{"sliding_window", nullptr}}).empty());
  CHECK_THAT(fault({{"hidden_act", "quick_gelu"}}), Contains("'hidden_act' is \"quick_gelu\""));
  CHECK_THAT(fault({{"partial_rotary_factor", 0.5}}), Contains("'partial_rotary_factor' is 0.5"));
  CHECK_THAT(fault({{"num_hidden_layers", "two"}}), Contains("num_hidden_layers"));
  nlohmann::json json = whole_config();
  json.erase("intermediate_size");
  CHECK_THAT(test::error_of([&] { read_llama(json); }), Contains("'intermediate_size' is missing"));
}

TEST_CASE("a Llama's configuration survives config.json") {
  TransformerConfig config = small_llama();
  config.rope_scaling = {
      .kind = GENERATE(RopeScalingKind::kNone, RopeScalingKind::kLinear, RopeScalingKind::kLlama3),
      .factor = 3.0,
      .low_frequency_factor = 1.5,
      .high_frequency_factor = 5.0,
      .original_max_positions = 77};
  config.rope_theta = 123.0;
  config.qkv_bias = config.attention_output_bias = true;
  config.activation = Activation::kGeGluTanh;
  config.head_dim = 10;
  const auto& family = find_family("llama");
  const TransformerConfig again = family.read_config(family.write_config(config), "config.json");
  CHECK(again.rope_scaling.kind == config.rope_scaling.kind);
  if (config.rope_scaling.kind == RopeScalingKind::kLlama3)
    CHECK(again.rope_scaling.original_max_positions == 77);
  CHECK(again.rope_theta == 123.0);
  CHECK(again.qkv_bias);
  CHECK(again.attention_output_bias);
  CHECK_FALSE(again.feed_forward_bias);
  CHECK(again.activation == Activation::kGeGluTanh);
  CHECK(again.head_dim == 10);
  CHECK(again.kv_heads() == 1);
  config.activation = Activation::kSilu;
  CHECK_THAT(test::error_of([&] { family.write_config(config); }), Contains("activation = silu"));
}

TEST_CASE("fresh Llama weights: normal with 0.02 everywhere, norms one, the padding's row zero") {
  TransformerConfig config = small_llama();
  config.vocab_size = 400;
  config.hidden_size = 128;
  config.intermediate_size = 256;
  config.tie_word_embeddings = false;
  config.pad_token_id = 7;
  const auto model = build_model(find_family("llama"), config, Head::kCausalLm, 15);
  for (const auto& item : model->named_parameters()) {
    const at::Tensor value = item.value().detach();
    CAPTURE(item.key());
    if (item.key().find("norm") != std::string::npos) {
      CHECK(at::equal(value, at::ones_like(value)));
    } else {
      const double count = static_cast<double>(value.numel());
      CHECK(std::abs(value.std().item<double>() - 0.02) < 5 * 0.02 / std::sqrt(2 * count) + 5e-5);
    }
  }
  CHECK(model->named_parameters()["embeddings.token.weight"][7].count_nonzero().item<int>() == 0);
}

namespace {

std::string fault_of(const std::string& family, const nlohmann::json& changes) {
  nlohmann::json json = whole_config();
  json.update({{"ffn_dim", 24}, {"num_key_value_heads", 2}});
  json.update(changes);
  return test::error_of([&] { find_family(family).read_config(json, "config.json"); });
}

}  // namespace

TEST_CASE("relatives of Llama refuse by name what they do not compute") {
  const nlohmann::json half{{"rope_parameters", {{"rope_theta", 10.0}, {"partial_rotary_factor", 0.5}}}};
  for (const char* family :
       {"llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "olmo2", "smollm3", "nanochat"})
    CHECK_THAT(fault_of(family, half), Contains("partial_rotary_factor"));
  CHECK(fault_of("phi3", half) == "");
  CHECK_THAT(fault_of("gpt_neox", {{"num_attention_heads", 8}}), Contains("num_attention_heads"));
  CHECK_THAT(fault_of("gpt_neox", {{"rotary_pct", 0.8}}), Contains("'rotary_pct'"));
  CHECK_THAT(fault_of("phi3", {{"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2.0}}}}),
             Contains("rope_type") && Contains("longrope"));
  CHECK_THAT(fault_of("phi3", {{"rope_scaling", {{"rope_type", "longrope"}}}}),
             Contains("'short_factor' is missing"));
  CHECK(fault_of("nanochat", {{"rope_parameters", {{"rope_type", "linear"}, {"factor", 2.0}}}}) == "");
  CHECK_THAT(fault_of("nanochat", {{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 2.0}}}}),
             Contains("'rope_scaling'") && Contains("attention_factor"));
  CHECK_THAT(fault_of("mixtral", {{"router_jitter_noise", 0.1}}), Contains("router_jitter_noise"));
  CHECK_THAT(fault_of("qwen3_moe", {{"mlp_only_layers", {"first"}}}), Contains("mlp_only_layers"));
  CHECK_THAT(fault_of("qwen2_moe", {{"decoder_sparse_step", 0}}), Contains("decoder_sparse_step"));
  CHECK_THAT(fault_of("gemma2", {{"layer_types", {"full_attention"}}}), Contains("layer_types"));
  CHECK_THAT(fault_of("gemma2", {{"layer_types", {"full_attention", "chunked_attention"}}}),
             Contains("layer_types"));
  CHECK_THAT(fault_of("qwen2", {{"layer_types", {"full_attention", "sliding_attention"}}}),
             Contains("there is no sliding_window"));
  CHECK_THAT(fault_of("gemma3_text", {{"attn_logit_softcapping", 30.0}}), Contains("attn_logit_softcapping"));
  CHECK_THAT(fault_of("gemma3_text", {{"rope_parameters", {{"rope_theta", 100.0}}}}),
             Contains("rope_parameters"));
  CHECK_THAT(fault_of("llama", {{"rope_parameters", {{"full_attention", {{"rope_theta", 100.0}}}}}}),
             Contains("full_attention"));
  CHECK_THAT(fault_of("gemma", {{"use_bidirectional_attention", true}}),
             Contains("use_bidirectional_attention"));
  CHECK_THAT(fault_of("smollm3", {{"no_rope_layers", {1, 2}}}), Contains("no_rope_layers"));
  CHECK_THAT(fault_of("smollm3", {{"layer_types", {"full_attention", "sliding_attention"}}}),
             Contains("'layer_types'"));
  CHECK(fault_of("smollm3", {{"layer_types", {"full_attention", "full_attention"}}}) == "");
  CHECK_THAT(fault_of("falcon", {{"hidden_dropout", 0.1}}), Contains("hidden_dropout"));
  CHECK_THAT(fault_of("falcon", {{"parallel_attn", false}, {"attention_dropout", 0.1}}),
             Contains("attention_dropout"));
  CHECK(fault_of("falcon", {{"attention_dropout", 0.1}}) == "");
  CHECK_THAT(fault_of("opt", {{"word_embed_proj_dim", 8}}), Contains("word_embed_proj_dim"));
  CHECK_THAT(fault_of("opt", {{"_remove_final_layer_norm", true}}), Contains("_remove_final_layer_norm"));
}

TEST_CASE("a file of Gemma 3 as transformers 4 wrote it gives both rotary bases") {
  nlohmann::json json = whole_config();
  json.update({{"rope_theta", 5e5}, {"rope_local_base_freq", 123.0}, {"sliding_window", 8}});
  const TransformerConfig config = find_family("gemma3_text").read_config(json, "config.json");
  CHECK(config.rope_theta == 5e5);
  CHECK(config.window_rope_theta == 123.0);
  CHECK(config.has_window(0));
}

TEST_CASE("a null of Falcon's multi_query or parallel_attn is false, an absent one true") {
  const auto read_change = [](const nlohmann::json& change) {
    nlohmann::json json = whole_config();
    if (!change.is_null()) json.update(change);  // {} is null
    return find_family("falcon").read_config(json, "config.json");
  };
  CHECK(read_change({}).kv_heads() == 1);
  CHECK(read_change({{"multi_query", nullptr}}).kv_heads() == read_change({}).num_heads);
  CHECK(read_change({}).sublayer_order == SublayerOrder::kParallelOneNorm);
  CHECK(read_change({{"parallel_attn", nullptr}}).sublayer_order == SublayerOrder::kSequential);
}

// transformers 5 takes YaRN's truncate from rope_parameters itself, not from the object of a type of layers.
TEST_CASE("truncate of YaRN counts for Llama, not in the rotary positions of Gemma 3's layers") {
  const nlohmann::json yarn{
      {"rope_type", "yarn"}, {"factor", 2.0}, {"original_max_position_embeddings", 8}, {"truncate", false}};
  const auto truncates = [&](const char* family, const nlohmann::json& change) {
    nlohmann::json json = whole_config();
    if (std::string(family) != "llama") json.update({{"sliding_window", 8}});
    json.update(change);
    return find_family(family).read_config(json, "config.json").rope_scaling.truncate;
  };
  CHECK_FALSE(truncates("llama", {{"rope_parameters", yarn}}));
  CHECK(truncates("gemma3_text", {{"rope_parameters", {{"full_attention", yarn}}}}));
  CHECK(truncates("gemma3_text", {{"rope_scaling", yarn}}));
}

// As transformers 5: 20 of 10 and 20, and of nothing max_position_embeddings.
TEST_CASE("the original context beside a scaling is preferred to the one inside") {
  nlohmann::json json = whole_config();
  json["rope_scaling"] = {{"rope_type", "llama3"},
                          {"factor", 2.0},
                          {"low_freq_factor", 1.0},
                          {"high_freq_factor", 4.0},
                          {"original_max_position_embeddings", 10}};
  CHECK(read_llama(json).rope_scaling.original_max_positions == 10);
  json["original_max_position_embeddings"] = 20;
  CHECK(read_llama(json).rope_scaling.original_max_positions == 20);
  json["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 2.0}};
  CHECK(read_llama(json).rope_scaling.original_max_positions == 20);
  json.erase("original_max_position_embeddings");
  CHECK(read_llama(json).rope_scaling.original_max_positions == 64);
}

TEST_CASE("rope_scaling beside Gemma 3's rope_parameters changes those of full attention") {
  nlohmann::json json = whole_config();
  json.update({{"sliding_window", 8},
               {"rope_parameters", {{"full_attention", {{"rope_type", "default"}, {"rope_theta", 50.0}}}}},
               {"rope_scaling", {{"rope_type", "linear"}, {"factor", 3.0}}}});
  const TransformerConfig config = find_family("gemma3_text").read_config(json, "config.json");
  CHECK(config.rope_theta == 50.0);
  CHECK(config.rope_scaling.kind == RopeScalingKind::kLinear);
  CHECK(config.rope_scaling.factor == 3.0);
}

TEST_CASE("a new nanochat's blocks are the identity, and its norms have no weights to train") {
  const Family& family = find_family("nanochat");
  TransformerConfig config = small_llama();
  config.initial_weights = family.base.initial_weights;
  config.norm = family.base.norm;
  const auto model = build_model(family, config, Head::kBase, 3);
  for (const auto& entry : model->named_parameters()) {
    CAPTURE(entry.key());
    const bool ends_residual =
        entry.key().find(".out.") != std::string::npos || entry.key().find(".down.") != std::string::npos;
    CHECK((entry.value().count_nonzero().item<std::int64_t>() == 0) == ends_residual);
    CHECK(entry.key().find("norm") == std::string::npos);
  }
}

TEST_CASE("what a family's config.json cannot say is not written") {
  const Family& gemma3 = find_family("gemma3_text");
  TransformerConfig config = find_preset("gemma-3-1b").preset.config;
  CHECK(test::error_of([&] { gemma3.write_config(config); }) == "");
  config.attention_softcap = 30.0;
  CHECK_THAT(test::error_of([&] { gemma3.write_config(config); }), Contains("attn_logit_softcapping"));
  for (const char* preset : {"mistral-7b", "qwen3-0.6b", "gemma-2b", "gemma-2-2b", "olmo-2-1b", "phi-4",
                             "smollm3-3b", "starcoder2-3b", "pythia-70m", "opt-125m", "mixtral-8x7b",
                             "qwen3-30b-a3b", "qwen1.5-moe-a2.7b", "phi-4-mini"}) {
    const auto entry = find_preset(preset);
    CHECK(test::error_of([&] { entry.family.write_config(entry.preset.config); }) == "");
  }
}
