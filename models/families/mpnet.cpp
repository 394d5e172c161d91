// MPNet (Song et al., 2020): RoBERTa's encoder without segments, with T5's buckets of relative positions
// beside its learned positions. The padding's id is always 1: positions are counted from it.

#include "models/families/kinds/bert_kind.h"

namespace zoo::family::mpnet {

C base() {
  C config = bert_base();
  config.position = PositionKind::kLearnedAndT5Buckets;
  config.position_count = PositionCount::kNotPadding;
  config.type_vocab_size = 0;
  config.pad_token_id = 1;
  config.max_positions = 512;
  return config;
}

WeightTable weights(const C& config) {
  WeightTable table{
      .names = bert_weights({.projections = q_k_v("attn."), .out = "attn.o", .norm = "LayerNorm"}),
      .prefix = "mpnet."};
  // In the place of token types, which it lacks.
  table.names[2] = {"stack.position_bias.weight", {"encoder.relative_attention_bias.weight"}};
  add_roberta_heads(table, config);
  return table;
}

C published() {
  C config = of_size(base(), {30527, 768, 12, 12}, /*max_positions=*/514);
  config.layer_norm_eps = 1e-5;
  return config;
}

Family family() {
  return {
      .model_type = "mpnet",
      .description = "MPNet (Song et al., 2020): RoBERTa with bucketed relative positions",
      .heads = encoder_heads("MPNet"),
      .base = base(),
      .keys = {"MPNet",
               concatenated(
                   {usual_size_keys(),
                    {
                        optional_key("max_position_embeddings", &C::max_positions),
                        // Transformers makes a table of so many rows, but counts 32 buckets.
                        expected_key("relative_attention_num_buckets", 32),
                        activation_key("hidden_act"),
                        optional_key("layer_norm_eps", &C::layer_norm_eps),
                        optional_key("initializer_range", &C::initializer_range),
                        optional_key("hidden_dropout_prob", {&C::dropout, &C::embedding_dropout,
                                                             &C::classifier_dropout, &C::token_dropout}),
                        optional_key("attention_probs_dropout_prob", &C::attention_dropout),
                        optional_key("tie_word_embeddings", &C::tie_word_embeddings),
                        own_key("tie_prediction_bias", {&C::tie_prediction_bias}, false),
                        expected_key("pad_token_id", 1),
                        label_keys(),
                    }})},
      .presets = {{"mpnet-base", "MPNet base", published()},
                  {"all-mpnet-base-v2", "MPNet for sentence embeddings", published()}},
      .build = encoder::builder(kRobertaStyle),
      .weight_table = weights,
  };
}

}  // namespace zoo::family::mpnet
