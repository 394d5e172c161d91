// Radford et al., 2019, "Language Models are Unsupervised Multitask Learners".

#include "models/families/kinds/shared.h"

namespace zoo::family::gpt2 {

C base() {
  C config;
  config.position = PositionKind::kLearned;
  config.activation = Activation::kGeluTanh;
  config.embedding_dropout = config.attention_dropout = config.dropout = 0.1;
  config.initial_weights = InitialWeights::kScaledResiduals;
  return config;
}

WeightTable weights(const C& config) {
  constexpr auto kTransposed = WeightLayout::kTransposed;
  // clang-format off
  WeightTable table{.names = {
      {"embeddings.token.weight",    {"wte.weight"}},
      {"embeddings.position.weight", {"wpe.weight"}},
  }};
  add_weights_and_biases(table, {
      {"stack.blocks.{}.attention_norm",    {"h.{}.ln_1"}},
      {"stack.blocks.{}.attention.qkv",     {"h.{}.attn.c_attn"}, kTransposed},
      {"stack.blocks.{}.attention.out",     {"h.{}.attn.c_proj"}, kTransposed},
      {"stack.blocks.{}.feed_forward_norm", {"h.{}.ln_2"}},
      {"stack.blocks.{}.feed_forward.up",   {"h.{}.mlp.c_fc"}, kTransposed},
      {"stack.blocks.{}.feed_forward.down", {"h.{}.mlp.c_proj"}, kTransposed},
      {"stack.final_norm",                  {"ln_f"}},
  });
  table.names.push_back({"score.weight", {"score.weight"}});
  // clang-format on
  table.has_all_biases = true;
  add_decoder_heads(table, config, "transformer.", "wte");
  table.ignored = gpt_mask_buffers();
  return table;
}

C sized(std::int64_t layers, std::int64_t heads, std::int64_t hidden, std::int64_t positions = 1024) {
  return of_size(base(), {50257, hidden, layers, heads}, positions);
}

// nanoGPT's configuration for a CPU: characters of Shakespeare, no biases, no dropout.
C shakespeare_char() {
  C config = of_size(base(), {65, 128, 4, 4}, /*max_positions=*/64);
  config.activation = Activation::kGelu;
  config.norm_bias = config.qkv_bias = config.attention_output_bias = config.feed_forward_bias = false;
  config.embedding_dropout = config.attention_dropout = config.dropout = 0.0;
  return config;
}

Family family() {
  return {
      .model_type = "gpt2",
      .description =
          "GPT-2 (Radford et al., 2019): causal decoder, pre-LayerNorm, learned positions, tanh-GELU, tied",
      .heads = {{Head::kCausalLm, "GPT2LMHeadModel"},
                {Head::kBase, "GPT2Model"},
                {Head::kSequenceClassification, "GPT2ForSequenceClassification"}},
      .base = base(),
      .keys = {"GPT-2", concatenated(gpt_keys(),
                                     {
                                         required_key("n_positions", &C::max_positions, "n_ctx"),
                                         optional_key("tie_word_embeddings", &C::tie_word_embeddings),
                                         own_key("bias",
                                                 {&C::norm_bias, &C::qkv_bias, &C::attention_output_bias,
                                                  &C::feed_forward_bias},
                                                 /*absent=*/true),
                                         expected_key("scale_attn_weights", true),
                                         expected_key("scale_attn_by_inverse_layer_idx", false),
                                         expected_key("add_cross_attention", false),
                                         ignored_keys({"n_ctx", "n_special", "predict_special_tokens",
                                                       "reorder_and_upcast_attn"}),
                                     })},
      // GPT-3: Brown et al. (2020), table 2.1. Its banded sparse layers have the parameters of full ones.
      .presets = {{"gpt2", "GPT-2 small", sized(12, 12, 768)},
                  {"gpt2-medium", "GPT-2 medium", sized(24, 16, 1024)},
                  {"gpt2-large", "GPT-2 large", sized(36, 20, 1280)},
                  {"gpt2-xl", "GPT-2 XL", sized(48, 25, 1600)},
                  {"shakespeare-char", "nanoGPT's character model for a CPU", shakespeare_char()},
                  {"gpt3", "GPT-3 175B, to count, not to build", sized(96, 96, 12288, 2048)}},
      .weight_table = weights,
  };
}

}  // namespace zoo::family::gpt2
