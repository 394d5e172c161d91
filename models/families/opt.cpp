#include "models/families/kinds/shared.h"

namespace zoo::family::opt {

C base() {
  return {.max_positions = 2048,
          .pad_token_id = 1,
          .trains_padding = false,
          .position_count = PositionCount::kNotMasked,
          .position_offset = 2,
          .activation = Activation::kRelu,
          .dropout = 0.1,
          .initial_weights = InitialWeights::kNormal};
}

WeightTable weights(const C& config) {
  WeightTable table{.names = {{"embeddings.token.weight", {"decoder.embed_tokens.weight"}},
                              {"embeddings.position.weight", {"decoder.embed_positions.weight"}},
                              {"score.weight", {"score.weight"}}}};
  // clang-format off
  add_weights_and_biases(table, {
      {"stack.blocks.{}.attention_norm",    {"decoder.layers.{}.self_attn_layer_norm"}},
      {"stack.blocks.{}.attention.qkv",     q_k_v("decoder.layers.{}.self_attn.", "_proj")},
      {"stack.blocks.{}.attention.out",     {"decoder.layers.{}.self_attn.out_proj"}},
      {"stack.blocks.{}.feed_forward_norm", {"decoder.layers.{}.final_layer_norm"}},
      {"stack.blocks.{}.feed_forward.up",   {"decoder.layers.{}.fc1"}},
      {"stack.blocks.{}.feed_forward.down", {"decoder.layers.{}.fc2"}},
      {"stack.final_norm",                  {"decoder.final_layer_norm"}},
  });
  // clang-format on
  add_decoder_heads(table, config, "model.", "decoder.embed_tokens");
  return table;
}

C sized(std::int64_t hidden, std::int64_t layers, std::int64_t heads) {
  return of_size(base(), {50272, hidden, layers, heads});
}

Family family() {
  return {
      .model_type = "opt",
      .description = "OPT (Zhang et al., 2022): GPT with ReLU and positions that skip what the mask hides",
      .heads = decoder_heads("OPT"),
      .base = base(),
      .keys = {"OPT",
               {
                   required_key("vocab_size", &C::vocab_size),
                   required_key("hidden_size", &C::hidden_size),
                   required_key("num_hidden_layers", &C::num_layers),
                   required_key("num_attention_heads", &C::num_heads),
                   required_key("ffn_dim", &C::intermediate_size),
                   required_key("max_position_embeddings", &C::max_positions),
                   activation_key("activation_function"),
                   optional_key("init_std", &C::initializer_range),
                   optional_key("dropout", &C::dropout),
                   optional_key("attention_dropout", &C::attention_dropout),
                   optional_key("enable_bias",
                                {&C::qkv_bias, &C::attention_output_bias, &C::feed_forward_bias}),
                   optional_key("tie_word_embeddings", &C::tie_word_embeddings),
                   choice_key("do_layer_norm_before", &C::norm_placement, NormPlacement::kPre,
                              NormPlacement::kPost),
                   // A narrower embedding would need projections without biases.
                   same_size_key("word_embed_proj_dim", &C::hidden_size, "hidden_size"),
                   pad_token_key(),
                   label_keys(),
                   expected_key("_remove_final_layer_norm", false),
                   expected_key("layer_norm_elementwise_affine", true),
                   expected_key("layerdrop", 0.0),
                   ignored_keys({"activation_dropout"}),
               }},
      .presets = {{"opt-125m", "OPT 125M", sized(768, 12, 12)},
                  {"opt-1.3b", "OPT 1.3B", sized(2048, 24, 32)},
                  {"opt-6.7b", "OPT 6.7B", sized(4096, 32, 32)}},
      .weight_table = weights,
  };
}

}  // namespace zoo::family::opt
