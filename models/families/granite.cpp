#include <nlohmann/json.hpp>

#include "models/families/kinds/llama_kind.h"

namespace zoo::family::granite {

C base() {
  C config = llama_base();
  config.attention_scale = 1.0;
  return config;
}

// The logits are divided by it.
ConfigKey logits_scaling_key() {
  const auto read = [](const ConfigReader& reader, C& config) {
    const double divisor = reader.get_double("logits_scaling", 1.0);
    if (!(divisor > 0)) reader.refuse("logits_scaling", "expected a positive number");
    config.logits_scale = 1.0 / divisor;
  };
  const auto write = [](const C& config, nlohmann::json& json) {
    json["logits_scaling"] = 1.0 / config.output_scale();
  };
  return {"logits_scaling", read, write};
}

C granite_2b() {
  C config = of_size(base(), {49155, 2048, 40, 32, 8192, 8}, /*max_positions=*/4096);
  config.rope_theta = 1e4;
  config.layer_norm_eps = 1e-5;
  config.tie_word_embeddings = true;
  config.embedding_scale = 12;
  config.residual_scale = 0.22;
  config.attention_scale = 0.015625;
  config.logits_scale = 1.0 / 8;
  return config;
}

Family family() {
  return {
      .model_type = "granite",
      .description =
          "Granite (IBM, 2024): Llama with multipliers of embeddings, scores, sublayers and logits",
      .heads = {{Head::kCausalLm, "GraniteForCausalLM"}, {Head::kBase, "GraniteModel"}},
      .base = base(),
      .keys = {"Granite",
               concatenated(rotary_llama_keys(),
                            {attention_bias_key(), optional_key("mlp_bias", &C::feed_forward_bias),
                             positive_key("embedding_multiplier", &C::embedding_scale),
                             positive_key("attention_multiplier", &C::attention_scale),
                             positive_key("residual_multiplier", &C::residual_scale), logits_scaling_key()})},
      .presets = {{"granite-3.0-2b", "Granite 3.0 2B", granite_2b()}},
      .weight_table = llama_weights,
  };
}

}  // namespace zoo::family::granite
