#include "models/families/kinds/llama_kind.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace zoo {
namespace {

using C = TransformerConfig;

// Our names of a block's norms and Llama's, Gemma 2's or OLMo 2's.
std::vector<std::pair<std::string, std::string>> norm_names(NormPlacement placement) {
  switch (placement) {
    case NormPlacement::kSandwich:
      return {{"attention_norm", "input_layernorm"},
              {"attention_end_norm", "post_attention_layernorm"},
              {"feed_forward_norm", "pre_feedforward_layernorm"},
              {"feed_forward_end_norm", "post_feedforward_layernorm"}};
    case NormPlacement::kBranchEnd:
      return {{"attention_norm", "post_attention_layernorm"},
              {"feed_forward_norm", "post_feedforward_layernorm"}};
    default:
      return {{"attention_norm", "input_layernorm"}, {"feed_forward_norm", "post_attention_layernorm"}};
  }
}

}  // namespace

TransformerConfig llama_base() {
  TransformerConfig config;
  config.position = PositionKind::kRotary;
  config.norm = NormKind::kRmsNorm;
  config.layer_norm_eps = 1e-6;
  config.activation = Activation::kSwiGlu;
  config.qkv_bias = config.attention_output_bias = config.feed_forward_bias = config.norm_bias = false;
  config.tie_word_embeddings = false;
  config.trains_padding = false;
  config.max_positions = 2048;
  config.initial_weights = InitialWeights::kNormal;
  return config;
}

ConfigKey attention_bias_key() {
  return optional_key("attention_bias", {&C::qkv_bias, &C::attention_output_bias});
}

std::vector<ConfigKey> llama_keys(const std::string& activation, ActivationUse use,
                                  const std::string& epsilon) {
  return concatenated({usual_size_keys(),
                       {
                           optional_key("num_key_value_heads", &C::num_kv_heads),
                           optional_key("head_dim", &C::head_dim),
                           optional_key("max_position_embeddings", &C::max_positions),
                           activation_key(activation, use),
                           optional_key(epsilon, &C::layer_norm_eps),
                           optional_key("attention_dropout", &C::attention_dropout),
                       },
                       usual_end_keys()});
}

std::vector<ConfigKey> rotary_llama_keys() { return concatenated(llama_keys(), rope_keys()); }

TransformerConfig gemma_base() {
  TransformerConfig config = llama_base();
  config.norm = NormKind::kRmsNormPlusOne;
  config.activation = Activation::kGeGluTanh;
  config.embedding_scale = 0;
  config.head_dim = 256;
  config.max_positions = 8192;
  config.tie_word_embeddings = true;
  config.pad_token_id = 0;
  return config;
}

ConfigKey qwen_window_key() {
  const auto read = [](const ConfigReader& reader, C& config) {
    const bool windowed = reader.get_bool("use_sliding_window", false) && !reader.is_null("sliding_window");
    config.sliding_window = windowed ? reader.get_int("sliding_window", 4096) : 0;
  };
  const auto write = [](const C& config, nlohmann::json& json) {
    json["use_sliding_window"] = config.sliding_window > 0;
    json["sliding_window"] = nullptr;
    if (config.sliding_window > 0) json["sliding_window"] = config.sliding_window;
  };
  return {"use_sliding_window", read, write};
}

std::vector<ConfigKey> qwen_window_keys() {
  // The default of layer_types, which stands after it.
  const auto read_layers = [](const ConfigReader& reader, C& config) {
    const std::int64_t first = reader.get_int("max_window_layers", 28);
    config.window_layers = by_layer(config.num_layers, [&](std::int64_t i) { return i >= first; });
  };
  return {then_read(qwen_window_key(), read_layers), layer_types_key(), ignored_keys({"sliding_window"})};
}

std::vector<ConfigKey> gemma2_keys() {
  const auto read_scale = [](const ConfigReader& reader, C& config) {
    const double scalar = reader.get_double("query_pre_attn_scalar", 256.0);
    if (scalar <= 0) reader.refuse("query_pre_attn_scalar", "expected a positive number");
    config.attention_scale = 1.0 / std::sqrt(scalar);
  };
  const auto write_scale = [](const C& config, nlohmann::json& json) {
    json["query_pre_attn_scalar"] = std::llround(1.0 / (config.attention_scale * config.attention_scale));
  };
  return concatenated({llama_keys("hidden_activation"),
                       {
                           attention_bias_key(),
                           {"query_pre_attn_scalar", read_scale, write_scale},
                           nullable_key("attn_logit_softcapping", &C::attention_softcap),
                           nullable_key("final_logit_softcapping", &C::logits_softcap),
                           nullable_key("sliding_window", &C::sliding_window),
                       }});
}

WeightTable llama_weights(const TransformerConfig& config) {
  constexpr auto kSame = WeightLayout::kSame;
  const std::vector<std::int64_t> rows = config.query_key_value_rows();
  // clang-format off
  WeightTable table{.names = {
      {"embeddings.token.weight",                  {"embed_tokens.weight"}},
      {"stack.blocks.{}.attention.qkv.weight",     q_k_v("layers.{}.self_attn.", "_proj.weight"), kSame, rows},
      {"stack.blocks.{}.attention.out.weight",     {"layers.{}.self_attn.o_proj.weight"}},
      {"stack.blocks.{}.feed_forward.up.weight",   {"layers.{}.mlp.gate_proj.weight",
                                                    "layers.{}.mlp.up_proj.weight"}},
      {"stack.blocks.{}.feed_forward.down.weight", {"layers.{}.mlp.down_proj.weight"}},
      {"stack.final_norm.weight",                  {"norm.weight"}},
      {"score.weight",                             {"score.weight"}},
  }};
  for (const auto& [ours, theirs] : norm_names(config.norm_placement)) table.names.push_back(
      {"stack.blocks.{}." + ours + ".weight",      {"layers.{}." + theirs + ".weight"}});
  if (config.query_key_norm != QueryKeyNorm::kNone) table.names.insert(table.names.end(), {
      {"stack.blocks.{}.attention.query_norm.weight", {"layers.{}.self_attn.q_norm.weight"}},
      {"stack.blocks.{}.attention.key_norm.weight",   {"layers.{}.self_attn.k_norm.weight"}},
  });
  if (config.qkv_bias) table.names.push_back(
      {"stack.blocks.{}.attention.qkv.bias",       q_k_v("layers.{}.self_attn.", "_proj.bias"), kSame, rows});
  if (config.attention_output_bias) table.names.push_back(
      {"stack.blocks.{}.attention.out.bias",       {"layers.{}.self_attn.o_proj.bias"}});
  if (config.feed_forward_bias) table.names.insert(table.names.end(), {
      {"stack.blocks.{}.feed_forward.up.bias",     {"layers.{}.mlp.gate_proj.bias",
                                                    "layers.{}.mlp.up_proj.bias"}},
      {"stack.blocks.{}.feed_forward.down.bias",   {"layers.{}.mlp.down_proj.bias"}},
  });
  // clang-format on
  if (config.norm_bias) {
    for (const auto& [ours, theirs] : norm_names(config.norm_placement))
      table.names.push_back({"stack.blocks.{}." + ours + ".bias", {"layers.{}." + theirs + ".bias"}});
    table.names.push_back({"stack.final_norm.bias", {"norm.bias"}});
  }
  add_decoder_heads(table, config, "model.", "embed_tokens");
  // Frequencies of the rotary positions, a buffer before transformers 4.32.
  table.ignored = {"layers.{}.self_attn.rotary_emb.inv_freq"};
  return table;
}

}  // namespace zoo
