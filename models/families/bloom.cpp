#include "models/families/kinds/shared.h"

namespace zoo::family::bloom {

C base() {
  return {.max_positions = 2048,
          .position = PositionKind::kAlibi,
          .activation = Activation::kGeluTanh,
          .embedding_norm = true,
          .initial_weights = InitialWeights::kNormal};
}

WeightTable weights(const C& config) {
  WeightTable table{
      .names = {{"embeddings.token.weight", {"word_embeddings.weight"}}, {"score.weight", {"score.weight"}}}};
  add_weights_and_biases(table, {{"embeddings.norm", {"word_embeddings_layernorm"}},
                                 {"stack.blocks.{}.attention_norm", {"h.{}.input_layernorm"}},
                                 {"stack.blocks.{}.feed_forward_norm", {"h.{}.post_attention_layernorm"}},
                                 {"stack.final_norm", {"ln_f"}}});
  add_weights_and_biases(table, joint_projections(config, "h.{}", "h.{}.self_attention"));
  add_decoder_heads(table, config, "transformer.", "word_embeddings");
  return table;
}

C sized(std::int64_t hidden, std::int64_t layers, std::int64_t heads) {
  C config = of_size(base(), {250880, hidden, layers, heads});
  config.pad_token_id = 3;
  return config;
}

Family family() {
  return {
      .model_type = "bloom",
      .description = "BLOOM (Le Scao et al., 2022): GPT with ALiBi and a norm after the embedding",
      .heads = decoder_heads("Bloom"),
      .base = base(),
      .keys = {"BLOOM",
               concatenated(
                   {{
                        required_key("vocab_size", &C::vocab_size),
                        required_key("hidden_size", &C::hidden_size, "n_embed"),
                        required_key("n_layer", &C::num_layers),
                        required_key("n_head", &C::num_heads),
                        // The length in training, which limits nothing.
                        optional_key("seq_length", &C::max_positions),
                        optional_key("layer_norm_epsilon", &C::layer_norm_eps),
                        optional_key("hidden_dropout", &C::dropout),
                        optional_key("attention_dropout", &C::attention_dropout),
                        alias_keys({{"num_attention_heads", "n_head"}, {"num_hidden_layers", "n_layer"}}),
                        ignored_keys({"attention_softmax_in_fp32", "bias_dropout_fusion",
                                      "masked_softmax_fusion", "n_inner", "offset_alibi", "seq_length",
                                      "skip_bias_add", "skip_bias_add_qkv", "unk_token_id"}),
                        expected_key("apply_residual_connection_post_layernorm", false),
                        // How a tensor parallel training split the products, which a file may ask to repeat.
                        expected_key("slow_but_exact", false),
                    },
                    usual_end_keys()})},
      .presets = {{"bloom-560m", "BLOOM 560M", sized(1024, 24, 16)},
                  {"bloom-1b7", "BLOOM 1.7B", sized(2048, 24, 16)},
                  {"bloom-7b1", "BLOOM 7.1B", sized(4096, 30, 32)}},
      .weight_table = weights,
  };
}

}  // namespace zoo::family::bloom
