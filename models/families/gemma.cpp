#include "models/families/kinds/llama_kind.h"

namespace zoo::family::gemma {

// transformers reads "gelu" as its approximation, with which Gemma was trained.
ConfigKey gelu_key() {
  return then_read(activation_key("hidden_act", ActivationUse::kGate), [](const ConfigReader&, C& config) {
    if (config.activation == Activation::kGeGlu) config.activation = Activation::kGeGluTanh;
  });
}

C sized(std::int64_t hidden, std::int64_t layers, std::int64_t heads, std::int64_t kv_heads,
        std::int64_t inner) {
  return of_size(gemma_base(), {256000, hidden, layers, heads, inner, kv_heads});
}

Family family() {
  return {
      .model_type = "gemma",
      .description = "Gemma (Mesnard et al., 2024): Llama with norms of 1 + w, GeGLU, scaled embeddings",
      .heads = decoder_heads("Gemma"),
      .base = gemma_base(),
      .keys = {"Gemma",
               concatenated(rotary_llama_keys(), {gelu_key(), attention_bias_key(),
                                                  expected_key("use_bidirectional_attention", false)})},
      .presets = {{"gemma-2b", "Gemma 2B", sized(2048, 18, 8, 1, 16384)},
                  {"gemma-7b", "Gemma 7B", sized(3072, 28, 16, 16, 24576)}},
      .weight_table = llama_weights,
  };
}

}  // namespace zoo::family::gemma
