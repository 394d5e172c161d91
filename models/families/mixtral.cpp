#include "models/families/kinds/experts_kind.h"

namespace zoo::family::mixtral {

C base() {
  C config = llama_base();
  config.num_kv_heads = 8;
  config.layer_norm_eps = 1e-5;
  config.rope_theta = 1e6;
  config.max_positions = 131072;
  config.num_experts = 8;
  return config;
}

WeightTable weights(const C& config) {
  return llama_weights_with_experts(config, "block_sparse_moe", {.gate = "w1", .up = "w3", .down = "w2"});
}

C sized(std::int64_t hidden, std::int64_t layers, std::int64_t heads, std::int64_t inner) {
  C config = of_size(base(), {32000, hidden, layers, heads, inner}, /*max_positions=*/32768);
  config.router_loss_weight = 0.02;
  return config;
}

C mixtral_8x22b() {
  C config = sized(6144, 56, 48, 16384);
  config.max_positions = 65536;
  config.router_loss_weight = 0.001;
  return config;
}

// Characters of a small text on a CPU, as llama-tiny. Trained from scratch, experts need balance.
C tiny() {
  C config = of_size(base(), {65, 128, 4, 4, 172, 2}, /*max_positions=*/256);
  config.num_experts = 4;
  config.rope_theta = 1e4;
  config.router_loss = true;
  config.router_loss_weight = 0.02;
  return config;
}

Family family() {
  return {
      .model_type = "mixtral",
      .description = "Mixtral (Jiang et al., 2024): Mistral with a mixture of experts",
      .heads = decoder_heads("Mixtral"),
      .base = base(),
      .keys = {"Mixtral", concatenated({rotary_llama_keys(),
                                        {num_experts_key("num_local_experts")},
                                        router_keys(),
                                        {nullable_key("sliding_window", &C::sliding_window),
                                         expected_key("router_jitter_noise", 0.0)}})},
      .presets = {{"mixtral-tiny", "characters on a CPU, with Mixtral's parts", tiny()},
                  {"mixtral-8x7b", "Mixtral 8x7B", sized(4096, 32, 32, 14336)},
                  {"mixtral-8x22b", "Mixtral 8x22B", mixtral_8x22b()}},
      .weight_table = weights,
  };
}

}  // namespace zoo::family::mixtral
