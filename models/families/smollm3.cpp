#include <nlohmann/json.hpp>

#include "models/families/kinds/llama_kind.h"

namespace zoo::family::smollm3 {

C base() {
  C config = llama_base();
  config.num_kv_heads = 4;
  config.max_positions = 32768;
  config.rope_theta = 2e6;
  config.tie_word_embeddings = true;
  config.pad_token_id = 128004;
  return config;
}

// The last of each `interval` layers has no positions.
std::vector<bool> all_but_every(std::int64_t interval, std::int64_t layers) {
  return by_layer(layers, [&](std::int64_t i) { return (i + 1) % interval != 0; });
}

// no_rope_layers has 1 for a layer with rotary positions and 0 for one without.
void read_rotary_layers(const ConfigReader& reader, C& config) {
  const std::int64_t interval = reader.get_int("no_rope_layer_interval", 4);
  if (interval <= 0) reader.refuse("no_rope_layer_interval", "expected a positive number");
  if (!reader.has("no_rope_layers")) {
    config.rotary_layers = all_but_every(interval, config.num_layers);
    return;
  }
  const nlohmann::json& layers = reader.at("no_rope_layers");
  if (!layers.is_array() || static_cast<std::int64_t>(layers.size()) != config.num_layers)
    reader.refuse("no_rope_layers", "expected a list of 0 or 1 for each layer");
  config.rotary_layers.clear();
  for (const nlohmann::json& layer : layers) {
    if (layer != 0 && layer != 1) reader.refuse("no_rope_layers", "expected a list of 0 or 1 for each layer");
    config.rotary_layers.push_back(layer == 1);
  }
}

void write_rotary_layers(const C& config, nlohmann::json& json) {
  for (std::int64_t i = 0; i < config.num_layers; ++i)
    json["no_rope_layers"].push_back(config.rotates(i) ? 1 : 0);
}

void refuse_windows(const ConfigReader& reader, C& /*config*/) {
  if (!reader.has("layer_types")) return;
  for (const nlohmann::json& type : reader.at("layer_types"))
    if (type != "full_attention") reader.refuse("layer_types", "expected full_attention for each layer");
}

C smollm3_3b() {
  C config = of_size(base(), {128256, 2048, 36, 16, 11008}, /*max_positions=*/65536);
  config.rope_theta = 5e6;
  config.rotary_layers = all_but_every(4, config.num_layers);
  return config;
}

Family family() {
  return {
      .model_type = "smollm3",
      .description = "SmolLM3 (Bakouch et al., 2025): Llama with no positions in every fourth layer",
      .heads = decoder_heads("SmolLM3"),
      .base = base(),
      .keys = {"SmolLM3", concatenated(rotary_llama_keys(),
                                       {
                                           {.name = "no_rope_layers",
                                            .read = read_rotary_layers,
                                            .write = write_rotary_layers,
                                            .by_layer = true},
                                           attention_bias_key(),
                                           {"layer_types", refuse_windows, {}},
                                           ignored_keys({"max_window_layers", "sliding_window"}),
                                           optional_key("mlp_bias", &C::feed_forward_bias),
                                           expected_key("use_sliding_window", false),
                                       })},
      .presets = {{"smollm3-3b", "SmolLM3 3B", smollm3_3b()}},
      .weight_table = llama_weights,
  };
}

}  // namespace zoo::family::smollm3
