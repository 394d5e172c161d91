// GPT-NeoX (Black et al., 2022) and Pythia (Biderman et al., 2023): attention and feed-forward network side
// by side, rotary positions over a quarter of each head; the rows of queries, keys and values alternate by
// head.

#include "models/families/kinds/rotary_keys.h"
#include "models/families/kinds/shared.h"

namespace zoo::family::gpt_neox {

C base() {
  return {.max_positions = 2048,
          .sublayer_order = SublayerOrder::kParallel,
          .position = PositionKind::kRotary,
          .activation = Activation::kGelu,
          .tie_word_embeddings = false,
          .initial_weights = InitialWeights::kNormal};
}

WeightTable weights(const C& config) {
  WeightTable table;
  table.names = {{"embeddings.token.weight", {"embed_in.weight"}}, {"score.weight", {"score.weight"}}};
  add_weights_and_biases(table,
                         {{"stack.blocks.{}.attention_norm", {"layers.{}.input_layernorm"}},
                          {"stack.blocks.{}.feed_forward_norm", {"layers.{}.post_attention_layernorm"}},
                          {"stack.final_norm", {"final_layer_norm"}}});
  add_weights_and_biases(table, joint_projections(config, "layers.{}", "layers.{}.attention"));
  add_decoder_heads(table, config, "gpt_neox.", "embed_in", "embed_out");
  table.renamed = {{"embed_out.weight", "lm_head.weight"}};  // of files that safetensors' save_model() wrote
  table.modules = {{"embed_out", "lm_head"}};                // since transformers 5
  // Buffers of older releases.
  table.ignored = {"layers.{}.attention.bias", "layers.{}.attention.masked_bias",
                   "layers.{}.attention.rotary_emb.inv_freq"};
  return table;
}

C sized(std::int64_t hidden, std::int64_t layers, std::int64_t heads, std::int64_t vocabulary = 50304) {
  C config = of_size(base(), {vocabulary, hidden, layers, heads});
  config.rotary_dim = hidden / heads / 4;
  return config;
}

Family family() {
  return {
      .model_type = "gpt_neox",
      .description =
          "GPT-NeoX (Black et al., 2022), Pythia: parallel sublayers, rotary over a quarter of a head",
      .heads = decoder_heads("GPTNeoX"),
      .base = base(),
      .keys = {"GPT-NeoX",
               concatenated({usual_size_keys(),
                             {
                                 optional_key("max_position_embeddings", &C::max_positions),
                                 activation_key("hidden_act"),
                                 optional_key("layer_norm_eps", &C::layer_norm_eps),
                                 optional_key("attention_dropout", &C::attention_dropout),
                                 optional_key("hidden_dropout", {&C::dropout, &C::embedding_dropout}),
                                 optional_key("attention_bias", {&C::qkv_bias, &C::attention_output_bias}),
                                 choice_key("use_parallel_residual", &C::sublayer_order,
                                            SublayerOrder::kParallel, SublayerOrder::kSequential),
                                 ignored_keys({"attention_probs_dropout_prob", "classifier_dropout",
                                               "hidden_dropout_prob", "is_decoder"}),
                             },
                             usual_end_keys(),
                             {// Older files say so for rope_theta; transformers 5 still reads it.
                              optional_key("rotary_emb_base", &C::rope_theta), rope_key(),
                              partial_rotary_key("rotary_pct", 0.25)}})},
      .presets = {{"pythia-70m", "Pythia 70M", sized(512, 6, 8)},
                  {"pythia-160m", "Pythia 160M", sized(768, 12, 12)},
                  {"pythia-410m", "Pythia 410M", sized(1024, 24, 16)},
                  {"pythia-1b", "Pythia 1B", sized(2048, 16, 8)},
                  {"gpt-neox-20b", "GPT-NeoX 20B", sized(6144, 44, 64, 50432)}},
      .weight_table = weights,
  };
}

}  // namespace zoo::family::gpt_neox
