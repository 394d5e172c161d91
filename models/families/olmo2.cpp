#include "models/families/kinds/llama_kind.h"

namespace zoo::family::olmo2 {

C base() {
  C config = llama_base();
  config.norm_placement = NormPlacement::kBranchEnd;
  config.query_key_norm = QueryKeyNorm::kWhole;
  config.layer_norm_eps = 1e-5;
  config.pad_token_id = 1;
  return config;
}

C sized(std::int64_t hidden, std::int64_t layers, std::int64_t heads, std::int64_t inner) {
  C config = of_size(base(), {100352, hidden, layers, heads, inner}, /*max_positions=*/4096);
  config.layer_norm_eps = 1e-6;
  config.rope_theta = 5e5;
  config.pad_token_id = 100277;
  return config;
}

Family family() {
  return {
      .model_type = "olmo2",
      .description =
          "OLMo 2 (Walsh et al., 2025): Llama with norms after the sublayers and of queries and keys",
      .heads = decoder_heads("Olmo2"),
      .base = base(),
      .keys = {"OLMo 2", concatenated(rotary_llama_keys(), {attention_bias_key()})},
      .presets = {{"olmo-2-1b", "OLMo 2 1B", sized(2048, 16, 16, 8192)},
                  {"olmo-2-7b", "OLMo 2 7B", sized(4096, 32, 32, 11008)}},
      .weight_table = llama_weights,
  };
}

}  // namespace zoo::family::olmo2
