// Gemma 3 (Kamath et al., 2025), its text models: a Gemma 2 with norms of queries and keys in place of
// softcaps; five layers of six have a window, and their rotary positions a base of their own. EmbeddingGemma
// (Vera et al., 2025) is one that sees in both directions: an encoder.

#include <nlohmann/json.hpp>

#include "models/encoder/encoder.h"
#include "models/families/kinds/llama_kind.h"

namespace zoo::family::gemma3 {

C base() {
  C config = gemma_base();
  config.norm_placement = NormPlacement::kSandwich;
  config.query_key_norm = QueryKeyNorm::kPerHead;
  config.sliding_window = 4096;
  config.attention_scale = 1.0 / std::sqrt(256.0);
  config.max_positions = 131072;
  config.rope_theta = 1e6;
  config.window_rope_theta = 1e4;
  return config;
}

bool has_window(std::int64_t layer) { return layer % 6 != 5; }

// Files of transformers 4 may name the period alone.
ConfigKey window_layers_key() {
  return then_read(layer_types_key(has_window), [](const ConfigReader& reader, C& config) {
    const std::int64_t period = reader.get_int("sliding_window_pattern", 6);
    if (period < 1) reader.refuse("sliding_window_pattern", "expected a positive number");
    if (!reader.has("layer_types"))
      config.window_layers =
          by_layer(config.num_layers, [&](std::int64_t layer) { return (layer + 1) % period != 0; });
  });
}

// transformers 5 keeps the two bases in rope_parameters, one object for each type of layer; 4 in
// rope_theta and rope_local_base_freq.
void read_ropes(const ConfigReader& reader, C& config) {
  config.window_rope_theta = reader.get_double("rope_local_base_freq", config.window_rope_theta);
  if (!reader.has("rope_parameters")) {
    rope_key().read(reader, config);
    config.rope_scaling.truncate = true;  // as in read_ropes_by_layer(), whose form transformers uses
    return;
  }
  config.rope_theta = reader.get_double("rope_theta", config.rope_theta);
  nlohmann::json ropes = reader.at("rope_parameters");
  if (!ropes.is_object()) reader.refuse("rope_parameters", "expected an object");
  // Where both stand, rope_scaling is the newer word on full attention.
  if (reader.has("rope_scaling") && ropes.contains("full_attention") && ropes["full_attention"].is_object()) {
    if (!reader.at("rope_scaling").is_object()) reader.refuse("rope_scaling", "expected an object");
    ropes["full_attention"].update(reader.at("rope_scaling"));
  }
  const nlohmann::json merged{{"rope_parameters", ropes}};
  if (!read_ropes_by_layer(ConfigReader(merged, reader.source()), config))
    reader.refuse("rope_parameters", "expected the objects full_attention and sliding_attention");
}

void write_ropes(const C& config, nlohmann::json& json) {
  rope_key().write(config, json);
  json["rope_local_base_freq"] = config.window_rope_theta;
}

C sized(std::int64_t hidden, std::int64_t layers, std::int64_t heads, std::int64_t kv_heads,
        std::int64_t inner) {
  C config = of_size(base(), {262144, hidden, layers, heads, inner, kv_heads}, /*max_positions=*/32768);
  config.sliding_window = 512;
  config.window_layers = by_layer(layers, has_window);
  return config;
}

Family family() {
  return {
      .model_type = "gemma3_text",
      .description =
          "Gemma 3 (Kamath et al., 2025), text: Gemma 2 with norms of queries and keys, no softcaps",
      .heads = {{Head::kCausalLm, "Gemma3ForCausalLM"},
                {Head::kBase, "Gemma3TextModel"},
                {Head::kSequenceClassification, "Gemma3TextForSequenceClassification"}},
      .base = base(),
      .keys = {"Gemma 3",
               concatenated(
                   {gemma2_keys(),
                    {window_layers_key(),
                     // A window then has half its positions on each side.
                     choice_key("use_bidirectional_attention", &C::shape, Shape::kEncoder, Shape::kDecoder),
                     ignored_keys({"_sliding_window_pattern", "cache_implementation"}),
                     // transformers does not cap the scores of Gemma 3, whatever the key says.
                     expected_key("attn_logit_softcapping", nullptr),
                     {"rope_theta", read_ropes, write_ropes}}})},
      .presets = {{"gemma-3-270m", "Gemma 3 270M", sized(640, 18, 4, 1, 2048)},
                  {"gemma-3-1b", "Gemma 3 1B", sized(1152, 26, 4, 1, 6912)}},
      .build = encoder::builder_beside(build_decoder, "a gemma3_text with use_bidirectional_attention"),
      .weight_table = llama_weights,
  };
}

}  // namespace zoo::family::gemma3
