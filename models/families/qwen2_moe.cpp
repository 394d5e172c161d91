#include "models/families/kinds/experts_kind.h"

namespace zoo::family::qwen2_moe {

C base() {
  C config = llama_base();
  config.num_kv_heads = 16;
  config.qkv_bias = true;
  config.max_positions = 32768;
  config.num_experts = 60;
  config.experts_per_token = 4;
  config.expert_size = 1408;
  config.shared_expert_size = 5632;
  config.expert_weights = ExpertWeights::kOfAll;
  return config;
}

// By default every other one of the first max_window_layers layers has the window.
std::vector<ConfigKey> window_keys() {
  std::vector<ConfigKey> keys = qwen_window_keys();
  keys.front() = then_read(keys.front(), [](const ConfigReader& reader, C& config) {
    const std::int64_t end = reader.get_int("max_window_layers", 28);
    config.window_layers = by_layer(config.num_layers, [&](std::int64_t i) { return i % 2 == 0 && i < end; });
  });
  return keys;
}

WeightTable weights(const C& config) {
  WeightTable table = llama_weights_with_experts(config, "mlp");
  // clang-format off
  table.names.insert(table.names.end(), {
      {"stack.blocks.{}.experts.shared.up.weight",   {"layers.{}.mlp.shared_expert.gate_proj.weight",
                                                      "layers.{}.mlp.shared_expert.up_proj.weight"}},
      {"stack.blocks.{}.experts.shared.down.weight", {"layers.{}.mlp.shared_expert.down_proj.weight"}},
      {"stack.blocks.{}.experts.shared_gate.weight", {"layers.{}.mlp.shared_expert_gate.weight"}},
  });
  // clang-format on
  return table;
}

C qwen15_moe() {
  C config = of_size(base(), {151936, 2048, 24, 16, 5632}, /*max_positions=*/8192);
  config.rope_theta = 1e6;
  return config;
}

C qwen2_57b() {
  C config = of_size(qwen15_moe(), {151936, 3584, 28, 28, 18944, 4}, /*max_positions=*/32768);
  config.num_experts = 64;
  config.experts_per_token = 8;
  config.expert_size = 2560;
  config.shared_expert_size = 20480;
  return config;
}

Family family() {
  return {
      .model_type = "qwen2_moe",
      .description = "Qwen2-MoE (Yang et al., 2024): Qwen2 with a mixture of experts and one for every token",
      .heads = decoder_heads("Qwen2Moe"),
      .base = base(),
      .keys = {"Qwen2-MoE",
               concatenated({rotary_llama_keys(),
                             {optional_key("qkv_bias", &C::qkv_bias)},
                             window_keys(),
                             {num_experts_key("num_experts"),
                              optional_key("shared_expert_intermediate_size", &C::shared_expert_size)},
                             router_keys(),
                             qwen_expert_keys()})},
      .presets = {{"qwen1.5-moe-a2.7b", "Qwen1.5-MoE-A2.7B", qwen15_moe()},
                  {"qwen2-57b-a14b", "Qwen2-57B-A14B", qwen2_57b()}},
      .weight_table = weights,
  };
}

}  // namespace zoo::family::qwen2_moe
