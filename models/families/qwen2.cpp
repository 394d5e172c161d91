#include "models/families/kinds/llama_kind.h"

namespace zoo::family::qwen2 {

C base() {
  C config = llama_base();
  config.qkv_bias = true;
  config.max_positions = 32768;
  return config;
}

C sized(std::int64_t hidden, std::int64_t layers, std::int64_t heads, std::int64_t kv_heads,
        std::int64_t inner) {
  C config = of_size(base(), {151936, hidden, layers, heads, inner, kv_heads});
  config.rope_theta = 1e6;
  config.tie_word_embeddings = true;
  return config;
}

Family family() {
  return {
      .model_type = "qwen2",
      .description = "Qwen2 (Yang et al., 2024): Llama with biases of queries, keys and values",
      .heads = decoder_heads("Qwen2"),
      .base = base(),
      .keys = {"Qwen2", concatenated({rotary_llama_keys(),
                                      qwen_window_keys(),
                                      {expected_key("use_mrope", false),
                                       required_key("num_key_value_heads", &C::num_kv_heads)}})},
      .presets = {{"qwen2.5-0.5b", "Qwen2.5 0.5B", sized(896, 24, 14, 2, 4864)},
                  {"qwen2.5-1.5b", "Qwen2.5 1.5B", sized(1536, 28, 12, 2, 8960)},
                  {"qwen2.5-3b", "Qwen2.5 3B", sized(2048, 36, 16, 2, 11008)}},
      .weight_table = llama_weights,
  };
}

}  // namespace zoo::family::qwen2
