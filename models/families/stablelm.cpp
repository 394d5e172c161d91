// StableLM (Tow et al., 2023; Bellagente et al., 2024): a Llama with LayerNorm, whose heads rotate in part.

#include "models/families/kinds/llama_kind.h"

namespace zoo::family::stablelm {

C base() {
  C config = llama_base();
  config.norm = NormKind::kLayerNorm;
  config.norm_bias = true;
  config.layer_norm_eps = 1e-5;
  config.max_positions = 4096;
  return config;
}

C sized(std::int64_t vocabulary, std::int64_t hidden, std::int64_t layers, std::int64_t inner) {
  C config = of_size(base(), {vocabulary, hidden, layers, 32, inner, 32});
  config.rotary_dim = hidden / 32 / 4;
  return config;
}

C stablelm_2() {
  C config = sized(100352, 2048, 24, 5632);
  config.qkv_bias = true;
  return config;
}

Family family() {
  return {
      .model_type = "stablelm",
      .description = "StableLM (Bellagente et al., 2024): Llama with LayerNorm and heads that rotate in part",
      .heads = decoder_heads("StableLm"),
      .base = base(),
      .keys = {"StableLM",
               concatenated({usual_size_keys(),
                             {
                                 required_key("num_key_value_heads", &C::num_kv_heads),
                                 optional_key("max_position_embeddings", &C::max_positions),
                                 activation_key("hidden_act", ActivationUse::kGate),
                                 optional_key("layer_norm_eps", &C::layer_norm_eps),
                                 rope_key(),
                                 partial_rotary_key("partial_rotary_factor", 0.25),
                                 optional_key("use_qkv_bias", &C::qkv_bias),
                                 // Each head's norm has weights of its own.
                                 expected_key("qk_layernorm", false),
                                 choice_key("use_parallel_residual", &C::sublayer_order,
                                            SublayerOrder::kParallelOneNorm, SublayerOrder::kSequential),
                                 // It acts on the feed-forward's output, but not on the attention's.
                                 expected_key("hidden_dropout", 0.0),
                                 optional_key("attention_dropout", &C::attention_dropout),
                             },
                             usual_end_keys()})},
      .presets = {{"stablelm-3b-4e1t", "StableLM 3B", sized(50304, 2560, 32, 6912)},
                  {"stablelm-2-1_6b", "StableLM 2 1.6B", stablelm_2()}},
      .weight_table = llama_weights,
  };
}

}  // namespace zoo::family::stablelm
