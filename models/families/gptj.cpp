// GPT-J (Wang and Komatsuzaki, 2021): attention and feed-forward side by side after one norm, rotary
// positions of a part of each head, in pairs of neighbours, and an output projection with a bias.

#include <nlohmann/json.hpp>

#include "models/families/kinds/shared.h"

namespace zoo::family::gptj {

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

WeightTable weights(const C& config) {
  const WeightName qkv{.ours = "stack.blocks.{}.attention.qkv.weight",
                       .theirs = q_k_v("h.{}.attn.", "_proj.weight"),
                       .layout = WeightLayout::kRotaryPairs,
                       .groups = config.num_heads,
                       .pairs = config.rotary_size() / 2};
  // clang-format off
  WeightTable table{.names = {
      {"embeddings.token.weight",              {"wte.weight"}},
      qkv,
      {"stack.blocks.{}.attention.out.weight", {"h.{}.attn.out_proj.weight"}},
      {"score.weight",                         {"score.weight"}},
  }};
  add_weights_and_biases(table, {
      {"stack.blocks.{}.attention_norm",       {"h.{}.ln_1"}},
      {"stack.blocks.{}.feed_forward.up",      {"h.{}.mlp.fc_in"}},
      {"stack.blocks.{}.feed_forward.down",    {"h.{}.mlp.fc_out"}},
      {"stack.final_norm",                     {"ln_f"}},
  });
  // clang-format on
  add_decoder_heads(table, config, "transformer.", "wte");
  table.names.push_back({"lm_head.bias", {"lm_head.bias"}});
  table.ignored = gpt_mask_buffers();
  return table;
}

C published() {
  C config = of_size(base(), {50400, 4096, 28, 16}, /*max_positions=*/2048);
  config.rotary_dim = 64;
  return config;
}

Family family() {
  return {
      .model_type = "gptj",
      .description =
          "GPT-J (Wang and Komatsuzaki, 2021): causal decoder, parallel sublayers, rotary positions",
      .heads = decoder_heads("GPTJ"),
      .base = base(),
      .keys = {"GPT-J", concatenated(gpt_keys(),
                                     {
                                         optional_key("n_positions", &C::max_positions),
                                         rotary_dim_key(),
                                         expected_key("tie_word_embeddings", false),
                                         expected_key("rotary", true),
                                         ignored_keys({"scale_attn_weights"}),
                                     })},
      .presets = {{"gpt-j-6b", "GPT-J 6B", published()}},
      .weight_table = weights,
  };
}

}  // namespace zoo::family::gptj
