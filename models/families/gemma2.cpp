#include "models/families/kinds/llama_kind.h"

namespace zoo::family::gemma2 {

C base() {
  C config = gemma_base();
  config.norm_placement = NormPlacement::kSandwich;
  config.sliding_window = 4096;
  config.attention_scale = 1.0 / std::sqrt(256.0);
  config.attention_softcap = 50.0;
  config.logits_softcap = 30.0;
  return config;
}

bool has_window(std::int64_t layer) { return layer % 2 == 0; }

C sized(std::int64_t hidden, std::int64_t layers, std::int64_t heads, std::int64_t inner) {
  C config = of_size(base(), {256000, hidden, layers, heads, inner, heads / 2});
  config.window_layers = by_layer(layers, has_window);
  return config;
}

Family family() {
  return {
      .model_type = "gemma2",
      .description =
          "Gemma 2 (Riviere et al., 2024): Gemma with more norms, softcaps, windows in every other layer",
      .heads = decoder_heads("Gemma2"),
      .base = base(),
      .keys = {"Gemma 2",
               concatenated({gemma2_keys(),
                             rope_keys(),
                             {layer_types_key(has_window), expected_key("use_bidirectional_attention", false),
                              ignored_keys({"cache_implementation", "hidden_act", "sliding_window_size"})}})},
      .presets = {{"gemma-2-2b", "Gemma 2 2B", sized(2304, 26, 8, 9216)},
                  {"gemma-2-9b", "Gemma 2 9B", sized(3584, 42, 16, 14336)}},
      .weight_table = llama_weights,
  };
}

}  // namespace zoo::family::gemma2
