// GPT-J (Wang and Komatsuzaki, 2021): attention and feed-forward side by side after one norm, rotary
// positions of a part of each head, in pairs of neighbours, and an output projection with a bias.

#include <nlohmann/json.hpp>

#include "models/decoder/decoder.h"
#include "models/families/kinds/shared.h"

namespace zoo {
namespace family::gptj {

using C = TransformerConfig;

C base() {
  C config;
  config.position = PositionKind::kRotary;
  config.sublayer_order = SublayerOrder::kParallelOneNorm;
  config.activation = Activation::kGeluTanh;
  config.qkv_bias = config.attention_output_bias = false;
  config.tie_word_embeddings = false;
  config.lm_head_bias = true;
  return config;
}

ConfigKey rotary_dim_key() {
  const auto read = [](const ConfigReader& reader, C& config) {
    config.rotary_dim = reader.get_int("rotary_dim", 64);
  };
  const auto write = [](const C& config, nlohmann::json& json) { json["rotary_dim"] = config.rotary_size(); };
  return {"rotary_dim", read, write};
}

ConfigKeys keys() {
  return {"GPT-J",
          {
              required_key("vocab_size", &C::vocab_size),
              required_key("n_embd", &C::hidden_size),
              required_key("n_layer", &C::num_layers),
              required_key("n_head", &C::num_heads),
              optional_key("n_positions", &C::max_positions),
              optional_key("n_inner", &C::intermediate_size),
              rotary_dim_key(),
              activation_key("activation_function"),
              optional_key("layer_norm_epsilon", &C::layer_norm_eps),
              optional_key("initializer_range", &C::initializer_range),
              optional_key("embd_pdrop", &C::embedding_dropout),
              optional_key("attn_pdrop", &C::attention_dropout),
              optional_key("resid_pdrop", &C::dropout),
              expected_key("tie_word_embeddings", false),
              pad_token_key(),
              label_keys(),
              expected_key("rotary", true),
              alias_keys({{"hidden_size", "n_embd"},
                          {"max_position_embeddings", "n_positions"},
                          {"num_attention_heads", "n_head"},
                          {"num_hidden_layers", "n_layer"}}),
              ignored_keys({"scale_attn_weights", "summary_activation", "summary_first_dropout",
                            "summary_proj_to_labels", "summary_type", "summary_use_proj"}),
          }};
}

WeightTable weights(const C& config) {
  const WeightName qkv{
      .ours = "stack.blocks.{}.attention.qkv.weight",
      .theirs = {"h.{}.attn.q_proj.weight", "h.{}.attn.k_proj.weight", "h.{}.attn.v_proj.weight"},
      .layout = WeightLayout::kRotaryPairs,
      .groups = config.num_heads,
      .pairs = config.rotary_size() / 2};
  WeightTable table;
  // clang-format off
  table.names = {
      {"embeddings.token.weight",              {"wte.weight"}},
      qkv,
      {"stack.blocks.{}.attention.out.weight", {"h.{}.attn.out_proj.weight"}},
      {"score.weight",                         {"score.weight"}},
  };
  add_weights_and_biases(table, {
      {"stack.blocks.{}.attention_norm",       {"h.{}.ln_1"}},
      {"stack.blocks.{}.feed_forward.up",      {"h.{}.mlp.fc_in"}},
      {"stack.blocks.{}.feed_forward.down",    {"h.{}.mlp.fc_out"}},
      {"stack.final_norm",                     {"ln_f"}},
  });
  // clang-format on
  add_decoder_heads(table, config, "transformer.", "wte");
  table.names.push_back({"lm_head.bias", {"lm_head.bias"}});
  // The causal mask, a buffer before transformers 4.31.
  table.ignored = {"h.{}.attn.bias", "h.{}.attn.masked_bias"};
  return table;
}

C published() {
  C config = base();
  config.vocab_size = 50400;
  config.hidden_size = 4096;
  config.num_layers = 28;
  config.num_heads = 16;
  config.max_positions = 2048;
  config.rotary_dim = 64;
  return config;
}

}  // namespace family::gptj

Family gptj() {
  using namespace family::gptj;
  return {
      .model_type = "gptj",
      .description =
          "GPT-J (Wang and Komatsuzaki, 2021): causal decoder, parallel sublayers, rotary positions",
      .heads = decoder_heads("GPTJ"),
      .base = base(),
      .keys = keys(),
      .presets = {{"gpt-j-6b", "GPT-J 6B", published()}},
      .build = build_decoder,
      .weight_table = weights,
  };
}

}  // namespace zoo
