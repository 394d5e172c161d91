#include "models/families/kinds/llama_kind.h"

namespace zoo::family::mistral {

C base() {
  C config = llama_base();
  config.num_kv_heads = 8;
  config.sliding_window = 4096;
  config.max_positions = 131072;
  return config;
}

C mistral_7b(std::int64_t vocabulary, std::int64_t window, double theta) {
  C config = of_size(base(), {vocabulary, 4096, 32, 32, 14336}, /*max_positions=*/32768);
  config.layer_norm_eps = 1e-5;
  config.sliding_window = window;
  config.rope_theta = theta;
  return config;
}

Family family() {
  return {
      .model_type = "mistral",
      .description = "Mistral (Jiang et al., 2023): Llama with sliding windows",
      .heads = decoder_heads("Mistral"),
      .base = base(),
      .keys = {"Mistral",
               concatenated(rotary_llama_keys(), {nullable_key("sliding_window", &C::sliding_window),
                                                  expected_key("layer_types", nullptr)})},
      .presets = {{"mistral-7b", "Mistral 7B", mistral_7b(32000, 4096, 1e4)},
                  {"mistral-7b-v0.3", "Mistral 7B v0.3", mistral_7b(32768, 0, 1e6)}},
      .weight_table = llama_weights,
  };
}

}  // namespace zoo::family::mistral
