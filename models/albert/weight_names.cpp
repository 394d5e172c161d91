#include "models/albert/weight_names.h"

namespace zoo::albert {

WeightTable weight_table(const TransformerConfig& config) {
  // The block that all layers share.
  const std::string layer = "encoder.albert_layer_groups.0.albert_layers.0.";
  WeightTable table;
  // clang-format off
  table.names = {
      {"embeddings.word.weight",       {"embeddings.word_embeddings.weight"}},
      {"embeddings.position.weight",   {"embeddings.position_embeddings.weight"}},
      {"embeddings.token_type.weight", {"embeddings.token_type_embeddings.weight"}},
      {"prediction_bias",              {"predictions.bias"}},
  };
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
      // Of AlbertForPreTraining, whose masked-lm head is read: no head of ours.
      {"sentence_order",                    {"sop_classifier.classifier"}},
  });
  // clang-format on
  table.prefix = "albert.";
  table.unprefixed = {"predictions.", "sop_classifier.", "classifier.", "qa_outputs."};
  table.of_heads = {"pooler.", "predictions.", "sop_classifier.", "classifier.", "qa_outputs."};
  if (config.tie_word_embeddings) {
    table.tied = {{"predictions.decoder.weight", "embeddings.word_embeddings.weight"},
                  {"predictions.decoder.bias", "predictions.bias"}};
    table.renamed = {{"predictions.bias", "predictions.decoder.bias"}};
  } else {
    add_weights_and_biases(table, {{"decoder", {"predictions.decoder"}}});
    // transformers 4 kept one bias for both.
    table.renamed = {{"predictions.decoder.bias", "predictions.bias"}};
  }
  table.ignored = {"embeddings.position_ids"};
  return table;
}

}  // namespace zoo::albert
