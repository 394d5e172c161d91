#include <nlohmann/json.hpp>

#include "models/families/kinds/shared.h"

namespace zoo::family::mpt {

C base() {
  C config;
  config.position = PositionKind::kAlibi;
  config.activation = Activation::kGelu;
  config.qkv_bias = config.attention_output_bias = config.feed_forward_bias = config.norm_bias = false;
  config.max_positions = 2048;
  return config;
}

std::vector<ConfigKey> attention_keys() {
  return {// Transformers reads no other rate than a whole number.
          expected_key("attn_pdrop", 0),
          nullable_key("softmax_scale", &C::attention_scale),
          expected_key("clip_qkv", nullptr),
          expected_key("qk_ln", false),
          expected_key("prefix_lm", false),
          expected_key("alibi", true),
          expected_key("alibi_bias_max", 8),
          expected_key("attn_type", "multihead_attention"),
          expected_key("attn_uses_sequence_id", false)};
}

ConfigKey attention_key() {
  const auto read = [](const ConfigReader& reader, C& config) {
    if (!reader.has("attn_config")) return;
    if (!reader.at("attn_config").is_object()) reader.refuse("attn_config", "expected an object");
    const ConfigReader inner(reader.at("attn_config"), reader.source() + ": attn_config");
    for (const ConfigKey& key : attention_keys()) key.read(inner, config);
  };
  const auto write = [](const C& config, nlohmann::json& json) {
    json["attn_config"] = nlohmann::json::object();
    for (const ConfigKey& key : attention_keys())
      if (key.write) key.write(config, json["attn_config"]);
  };
  return {"attn_config", read, write};
}

WeightTable weights(const C& config) {
  // clang-format off
  WeightTable table{.names = {
      {"embeddings.token.weight",                  {"wte.weight"}},
      {"stack.blocks.{}.attention_norm.weight",    {"blocks.{}.norm_1.weight"}},
      {"stack.blocks.{}.attention.qkv.weight",     {"blocks.{}.attn.Wqkv.weight"}},
      {"stack.blocks.{}.attention.out.weight",     {"blocks.{}.attn.out_proj.weight"}},
      {"stack.blocks.{}.feed_forward_norm.weight", {"blocks.{}.norm_2.weight"}},
      {"stack.blocks.{}.feed_forward.up.weight",   {"blocks.{}.ffn.up_proj.weight"}},
      {"stack.blocks.{}.feed_forward.down.weight", {"blocks.{}.ffn.down_proj.weight"}},
      {"stack.final_norm.weight",                  {"norm_f.weight"}},
      {"score.weight",                             {"score.weight"}},
  }};
  // clang-format on
  add_decoder_heads(table, config, "transformer.", "wte");
  return table;
}

Family family() {
  return {
      .model_type = "mpt",
      .description = "MPT (MosaicML, 2023): causal decoder, ALiBi, LayerNorm, no biases",
      .heads = decoder_heads("Mpt"),
      .base = base(),
      .keys = {"MPT",
               concatenated({{
                                 required_key("vocab_size", &C::vocab_size),
                                 required_key("d_model", &C::hidden_size),
                                 required_key("n_layers", &C::num_layers),
                                 required_key("n_heads", &C::num_heads),
                                 optional_key("max_seq_len", &C::max_positions),
                                 attention_key(),
                                 optional_key("layer_norm_epsilon", &C::layer_norm_eps),
                                 expected_key("no_bias", true),
                                 alias_keys({{"hidden_size", "d_model"},
                                             {"num_attention_heads", "n_heads"},
                                             {"num_hidden_layers", "n_layers"}}),
                                 ignored_keys({"emb_pdrop", "embedding_fraction", "expansion_ratio",
                                               "init_config", "init_device", "learned_pos_emb", "norm_type",
                                               "resid_pdrop", "tokenizer_name", "verbose"}),
                             },
                             usual_end_keys()})},
      .presets = {{"mpt-7b", "MPT 7B", of_size(base(), {50432, 4096, 32, 32})}},
      .weight_table = weights,
  };
}

}  // namespace zoo::family::mpt
