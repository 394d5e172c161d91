#include "models/families/kinds/experts_kind.h"

namespace zoo::family::qwen3_moe {

C base() {
  C config = llama_base();
  config.query_key_norm = QueryKeyNorm::kPerHead;
  config.num_kv_heads = 4;
  config.max_positions = 32768;
  config.num_experts = 128;
  config.experts_per_token = 8;
  config.expert_size = 768;
  config.expert_weights = ExpertWeights::kOfAll;
  return config;
}

WeightTable weights(const C& config) { return llama_weights_with_experts(config, "mlp"); }

C sized(std::int64_t hidden, std::int64_t layers, std::int64_t heads, std::int64_t inner,
        std::int64_t expert) {
  C config = of_size(base(), {151936, hidden, layers, heads, inner}, /*max_positions=*/40960);
  config.head_dim = 128;
  config.expert_size = expert;
  config.expert_weights = ExpertWeights::kOfChosen;
  config.rope_theta = 1e6;
  return config;
}

Family family() {
  return {
      .model_type = "qwen3_moe",
      .description = "Qwen3-MoE (Yang et al., 2025): Qwen3 with a mixture of many small experts",
      .heads = decoder_heads("Qwen3Moe"),
      .base = base(),
      .keys = {"Qwen3-MoE",
               concatenated({rotary_llama_keys(),
                             // Unlike Qwen3's, the window is that of all layers.
                             {attention_bias_key(), qwen_window_key(), num_experts_key("num_experts"),
                              ignored_keys({"max_window_layers"})},
                             router_keys(),
                             qwen_expert_keys()})},
      .presets = {{"qwen3-30b-a3b", "Qwen3 30B-A3B", sized(2048, 48, 32, 6144, 768)},
                  {"qwen3-235b-a22b", "Qwen3 235B-A22B", sized(4096, 94, 64, 12288, 1536)}},
      .weight_table = weights,
  };
}

}  // namespace zoo::family::qwen3_moe
