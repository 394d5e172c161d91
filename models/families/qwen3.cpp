#include "models/families/kinds/llama_kind.h"

namespace zoo::family::qwen3 {

C base() {
  C config = llama_base();
  config.query_key_norm = QueryKeyNorm::kPerHead;
  config.head_dim = 128;
  config.max_positions = 32768;
  return config;
}

C sized(std::int64_t hidden, std::int64_t layers, std::int64_t heads, std::int64_t inner) {
  C config = of_size(base(), {151936, hidden, layers, heads, inner, 8}, /*max_positions=*/40960);
  config.rope_theta = 1e6;
  config.tie_word_embeddings = true;
  return config;
}

Family family() {
  return {
      .model_type = "qwen3",
      .description = "Qwen3 (Yang et al., 2025): Llama with norms of queries and keys",
      .heads = decoder_heads("Qwen3"),
      .base = base(),
      .keys = {"Qwen3", concatenated({rotary_llama_keys(), qwen_window_keys(), {attention_bias_key()}})},
      .presets = {{"qwen3-0.6b", "Qwen3 0.6B", sized(1024, 28, 16, 3072)},
                  {"qwen3-1.7b", "Qwen3 1.7B", sized(2048, 28, 16, 6144)},
                  {"qwen3-4b", "Qwen3 4B", sized(2560, 36, 32, 9728)}},
      .weight_table = llama_weights,
  };
}

}  // namespace zoo::family::qwen3
