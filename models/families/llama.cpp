// Llama (Touvron et al., 2023; Dubey et al., 2024): a causal decoder with RMSNorm before the sublayers,
// rotary positions, SwiGLU, fewer key/value heads than query heads, no biases.

#include "models/families/kinds/llama_kind.h"

namespace zoo::family::llama {

C sized(const Sizes& sizes, std::int64_t max_positions) {
  C config = of_size(llama_base(), sizes, max_positions);
  config.layer_norm_eps = 1e-5;
  return config;
}

// Dubey et al. (2024): one vocabulary and rotary base for all sizes.
C llama3(std::int64_t hidden, std::int64_t layers, std::int64_t heads, std::int64_t inner) {
  C config = sized({128256, hidden, layers, heads, inner, 8}, /*max_positions=*/8192);
  config.rope_theta = 500000.0;
  return config;
}

// Sizes of 2024 for small machines: longer contexts by scaling, tied.
C llama32(C config) {
  config.max_positions = 131072;
  config.tie_word_embeddings = true;
  config.rope_scaling = {.kind = RopeScalingKind::kLlama3, .factor = 32.0};
  return config;
}

// Characters of a small text on a CPU, as shakespeare-char of GPT-2.
C tiny() {
  C config = sized({65, 128, 4, 4, 344, 2}, /*max_positions=*/256);
  config.tie_word_embeddings = true;
  return config;
}

Family family() {
  return {
      .model_type = "llama",
      .description =
          "Llama (Touvron et al., 2023): causal decoder, pre-RMSNorm, rotary positions, SwiGLU, grouped "
          "heads",
      .heads = decoder_heads("Llama"),
      .base = llama_base(),
      .keys = {"Llama", concatenated(rotary_llama_keys(),
                                     {attention_bias_key(), optional_key("mlp_bias", &C::feed_forward_bias),
                                      expected_key("sliding_window", nullptr)})},
      .presets = {{"llama-tiny", "characters on a CPU, with Llama's parts", tiny()},
                  {"llama-2-7b", "Llama 2 7B", sized({32000, 4096, 32, 32, 11008}, 4096)},
                  {"llama-3-8b", "Llama 3 8B", llama3(4096, 32, 32, 14336)},
                  {"llama-3.2-1b", "Llama 3.2 1B", llama32(llama3(2048, 16, 32, 8192))},
                  {"llama-3.2-3b", "Llama 3.2 3B", llama32(llama3(3072, 28, 24, 8192))}},
      .weight_table = llama_weights,
  };
}

}  // namespace zoo::family::llama
