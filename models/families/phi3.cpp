#include "models/families/kinds/llama_kind.h"

namespace zoo::family::phi3 {

C base() {
  C config = llama_base();
  config.layer_norm_eps = 1e-5;
  config.max_positions = 4096;
  config.pad_token_id = 32000;
  return config;
}

// Its scaling is longrope or none, as in transformers.
ConfigKey longrope_key() {
  return then_read(rope_key(/*original=*/4096), [](const ConfigReader& reader, C& config) {
    const RopeScalingKind kind = config.rope_scaling.kind;
    if (kind == RopeScalingKind::kNone || kind == RopeScalingKind::kLongRope) return;
    reader.refuse(reader.has("rope_scaling") ? "rope_scaling" : "rope_parameters",
                  "expected a rope_type of default or longrope");
  });
}

WeightTable weights(const C& config) {
  WeightTable table = llama_weights(config);
  for (WeightName& name : table.names) {
    if (name.ours.ends_with(".qkv.weight")) name = {name.ours, {"layers.{}.self_attn.qkv_proj.weight"}};
    if (name.ours.ends_with(".up.weight")) name = {name.ours, {"layers.{}.mlp.gate_up_proj.weight"}};
  }
  return table;
}

C phi3_mini() {
  C config = of_size(base(), {32064, 3072, 32, 32, 8192});
  config.sliding_window = 2047;
  return config;
}

// Abdin et al. (2025): a context of 128K by longrope, whose factors are of the checkpoint alone.
C phi4_mini() {
  C config = of_size(base(), {200064, 3072, 32, 24, 8192, 8});
  config.rotary_dim = 96;
  config.pad_token_id = 199999;
  config.tie_word_embeddings = true;
  return config;
}

C phi4() {
  C config = of_size(base(), {100352, 5120, 40, 40, 17920, 10}, /*max_positions=*/16384);
  config.rope_theta = 250000.0;
  config.pad_token_id = 100349;
  return config;
}

Family family() {
  return {
      .model_type = "phi3",
      .description = "Phi-3 and Phi-4 (Abdin et al., 2024): Llama with joint weights and partial rotation",
      .heads = decoder_heads("Phi3"),
      .base = base(),
      .keys = {"Phi-3", concatenated({llama_keys(),
                                      {
                                          longrope_key(),
                                          partial_rotary_key("partial_rotary_factor", 1.0),
                                          nullable_key("sliding_window", &C::sliding_window),
                                          optional_key("resid_pdrop", &C::dropout),
                                          ignored_keys({"attention_bias", "embd_pdrop", "full_attn_mod",
                                                        "interpolate_factor", "lm_head_bias", "mlp_bias",
                                                        "original_max_position_embeddings"}),
                                      }})},
      .presets = {{"phi-3-mini-4k", "Phi-3 mini, 3.8B", phi3_mini()},
                  {"phi-4-mini", "Phi-4 mini, 3.8B, its original context of 4K", phi4_mini()},
                  {"phi-4", "Phi-4, 14B", phi4()}},
      .weight_table = weights,
  };
}

}  // namespace zoo::family::phi3
