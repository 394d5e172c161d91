#include "models/families/kinds/llama_kind.h"

namespace zoo::family::starcoder2 {

C base() {
  return {.num_kv_heads = 2,
          .max_positions = 4096,
          .trains_padding = false,
          .position = PositionKind::kRotary,
          .initializer_range = 0.018042,
          .initial_weights = InitialWeights::kNormal};
}

WeightTable weights(const C& config) {
  WeightTable table = llama_weights(config);
  std::erase_if(table.names,
                [](const WeightName& name) { return name.ours.find(".feed_forward.") != std::string::npos; });
  table.names.push_back({"stack.blocks.{}.feed_forward.up.weight", {"layers.{}.mlp.c_fc.weight"}});
  table.names.push_back({"stack.blocks.{}.feed_forward.down.weight", {"layers.{}.mlp.c_proj.weight"}});
  if (config.feed_forward_bias) {
    table.names.push_back({"stack.blocks.{}.feed_forward.up.bias", {"layers.{}.mlp.c_fc.bias"}});
    table.names.push_back({"stack.blocks.{}.feed_forward.down.bias", {"layers.{}.mlp.c_proj.bias"}});
  }
  return table;
}

C sized(std::int64_t hidden, std::int64_t layers, std::int64_t heads, std::int64_t kv_heads,
        std::int64_t inner) {
  C config = of_size(base(), {49152, hidden, layers, heads, inner, kv_heads}, /*max_positions=*/16384);
  config.sliding_window = 4096;
  config.rope_theta = 1e6;
  return config;
}

Family family() {
  return {
      .model_type = "starcoder2",
      .description = "StarCoder2 (Lozhkov et al., 2024): Mistral's attention, GPT-2's norms and feed-forward",
      .heads = decoder_heads("Starcoder2"),
      .base = base(),
      .keys = {"StarCoder2",
               concatenated({llama_keys("hidden_act", ActivationUse::kElementwise, "norm_epsilon"),
                             {
                                 optional_key("use_bias", {&C::qkv_bias, &C::attention_output_bias,
                                                           &C::feed_forward_bias}),
                                 optional_key("residual_dropout", &C::dropout),
                                 optional_key("embedding_dropout", &C::embedding_dropout),
                                 nullable_key("sliding_window", &C::sliding_window),
                                 ignored_keys({"activation_function", "attention_softmax_in_fp32",
                                               "layer_norm_epsilon", "mlp_type", "norm_type",
                                               "scale_attention_softmax_in_fp32", "scale_attn_weights"}),
                             },
                             rope_keys()})},
      .presets = {{"starcoder2-3b", "StarCoder2 3B", sized(3072, 30, 24, 2, 12288)},
                  {"starcoder2-7b", "StarCoder2 7B", sized(4608, 32, 36, 4, 18432)}},
      .weight_table = weights,
  };
}

}  // namespace zoo::family::starcoder2
