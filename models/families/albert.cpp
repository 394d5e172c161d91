// Groups of layers are refused: no published model has them.

#include "models/families/kinds/bert_kind.h"

namespace zoo::family::albert {

C base() {
  C config = bert_base();
  config.embedding_size = 128;
  config.sharing = Sharing::kAllLayers;
  config.activation = Activation::kGeluTanh;
  config.embedding_dropout = config.attention_dropout = config.dropout = 0.0;
  config.dropped_outputs = DroppedOutputs::kAttention;
  return config;
}

WeightTable weights(const C& config) {
  // The block that all layers share.
  const std::string layer = "encoder.albert_layer_groups.0.albert_layers.0.";
  // clang-format off
  WeightTable table{.names = {
      {"embeddings.token.weight",      {"embeddings.word_embeddings.weight"}},
      {"embeddings.position.weight",   {"embeddings.position_embeddings.weight"}},
      {"embeddings.token_type.weight", {"embeddings.token_type_embeddings.weight"}},
  }};
  add_weights_and_biases(table, {
      {"embeddings.norm",                   {"embeddings.LayerNorm"}},
      {"embeddings.projection",             {"encoder.embedding_hidden_mapping_in"}},
      {"stack.blocks.0.attention.qkv",      {layer + "attention.query",
                                             layer + "attention.key",
                                             layer + "attention.value"}},
      {"stack.blocks.0.attention.out",      {layer + "attention.dense"}},
      {"stack.blocks.0.attention_norm",     {layer + "attention.LayerNorm"}},
      {"stack.blocks.0.feed_forward.up",    {layer + "ffn"}},
      {"stack.blocks.0.feed_forward.down",  {layer + "ffn_output"}},
      {"stack.blocks.0.feed_forward_norm",  {layer + "full_layer_layer_norm"}},
      {"pooler.dense",                      {"pooler"}},
      {"prediction_dense",                  {"predictions.dense"}},
      {"prediction_norm",                   {"predictions.LayerNorm"}},
      {"sentence_classifier",               {"classifier"}},
      {"token_classifier",                  {"classifier"}},
      {"span",                              {"qa_outputs"}},
      {"next_sentence",                     {"sop_classifier.classifier"}},
  });
  // clang-format on
  add_masked_lm_projection(table, config, "predictions.decoder", "predictions.bias");
  table.prefix = "albert.";
  table.unprefixed = {"predictions.", "sop_classifier.", "classifier.", "qa_outputs."};
  table.of_heads = {"pooler."};
  table.ignored = {"embeddings.position_ids"};
  return table;
}

// Version 2 of the published models (table 1 of the paper).
C sized(std::int64_t layers, std::int64_t heads, std::int64_t hidden) {
  return of_size(base(), {30000, hidden, layers, heads}, /*max_positions=*/512);
}

Family family() {
  return {
      .model_type = "albert",
      .description =
          "ALBERT (Lan et al., 2020): BERT with one layer's weights for all and a factorised embedding",
      .heads = concatenated(encoder_heads("Albert"), {{Head::kPretraining, "AlbertForPreTraining"}}),
      .base = base(),
      .keys = {"ALBERT", concatenated(bert_keys(),
                                      {
                                          required_key("embedding_size", &C::embedding_size),
                                          positive_key("embedding_size", &C::embedding_size),
                                          optional_key("classifier_dropout_prob",
                                                       {&C::classifier_dropout, &C::token_dropout}),
                                          expected_key("num_hidden_groups", 1),
                                          expected_key("inner_group_num", 1),
                                          ignored_keys({"down_scale_factor", "gap_size", "layers_to_keep",
                                                        "net_structure_type", "num_memory_blocks"}),
                                      })},
      .presets = {{"albert-base-v2", "ALBERT base", sized(12, 12, 768)},
                  {"albert-large-v2", "ALBERT large", sized(24, 16, 1024)},
                  {"albert-xlarge-v2", "ALBERT xlarge", sized(24, 16, 2048)},
                  {"albert-xxlarge-v2", "ALBERT xxlarge", sized(12, 64, 4096)}},
      .build = encoder::builder({.drops_sentence_order = true}),
      .weight_table = weights,
  };
}

}  // namespace zoo::family::albert
