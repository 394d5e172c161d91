#include "models/distilbert/weight_names.h"

namespace zoo::distilbert {

WeightTable weight_table(const TransformerConfig& config) {
  WeightTable table;
  // clang-format off
  table.names = {
      {"embeddings.word.weight",     {"embeddings.word_embeddings.weight"}},
      {"embeddings.position.weight", {"embeddings.position_embeddings.weight"}},
  };
  add_weights_and_biases(table, {
      {"embeddings.norm",                    {"embeddings.LayerNorm"}},
      {"stack.blocks.{}.attention.qkv",      {"transformer.layer.{}.attention.q_lin",
                                              "transformer.layer.{}.attention.k_lin",
                                              "transformer.layer.{}.attention.v_lin"}},
      {"stack.blocks.{}.attention.out",      {"transformer.layer.{}.attention.out_lin"}},
      {"stack.blocks.{}.attention_norm",     {"transformer.layer.{}.sa_layer_norm"}},
      {"stack.blocks.{}.feed_forward.up",    {"transformer.layer.{}.ffn.lin1"}},
      {"stack.blocks.{}.feed_forward.down",  {"transformer.layer.{}.ffn.lin2"}},
      {"stack.blocks.{}.feed_forward_norm",  {"transformer.layer.{}.output_layer_norm"}},
      {"prediction_dense",                   {"vocab_transform"}},
      {"prediction_norm",                    {"vocab_layer_norm"}},
      {"sentence_dense",                     {"pre_classifier"}},
      {"sentence_classifier",                {"classifier"}},
      {"token_classifier",                   {"classifier"}},
      {"span",                               {"qa_outputs"}},
  });
  // clang-format on
  table.prefix = "distilbert.";
  table.unprefixed = table.of_heads = {"vocab_transform.", "vocab_layer_norm.", "vocab_projector.",
                                       "pre_classifier.",  "classifier.",       "qa_outputs."};
  if (config.tie_word_embeddings) {
    table.names.push_back({"prediction_bias", {"vocab_projector.bias"}});
    table.tied = {{"vocab_projector.weight", "embeddings.word_embeddings.weight"}};
  } else {
    add_weights_and_biases(table, {{"decoder", {"vocab_projector"}}});
  }
  table.ignored = {"embeddings.position_ids"};
  return table;
}

}  // namespace zoo::distilbert
