#include "models/roberta/weight_names.h"

namespace zoo::roberta {

WeightTable weight_table(const TransformerConfig& config) {
  WeightTable table;
  // clang-format off
  table.names = {
      {"embeddings.word.weight",       {"embeddings.word_embeddings.weight"}},
      {"embeddings.position.weight",   {"embeddings.position_embeddings.weight"}},
      {"embeddings.token_type.weight", {"embeddings.token_type_embeddings.weight"}},
      {"prediction_bias",              {"lm_head.bias"}},
  };
  add_weights_and_biases(table, {
      {"embeddings.norm",                    {"embeddings.LayerNorm"}},
      {"stack.blocks.{}.attention.qkv",      {"encoder.layer.{}.attention.self.query",
                                              "encoder.layer.{}.attention.self.key",
                                              "encoder.layer.{}.attention.self.value"}},
      {"stack.blocks.{}.attention.out",      {"encoder.layer.{}.attention.output.dense"}},
      {"stack.blocks.{}.attention_norm",     {"encoder.layer.{}.attention.output.LayerNorm"}},
      {"stack.blocks.{}.feed_forward.up",    {"encoder.layer.{}.intermediate.dense"}},
      {"stack.blocks.{}.feed_forward.down",  {"encoder.layer.{}.output.dense"}},
      {"stack.blocks.{}.feed_forward_norm",  {"encoder.layer.{}.output.LayerNorm"}},
      {"pooler.dense",                       {"pooler.dense"}},
      {"prediction_dense",                   {"lm_head.dense"}},
      {"prediction_norm",                    {"lm_head.layer_norm"}},
      {"sentence_dense",                     {"classifier.dense"}},
      {"sentence_classifier",                {"classifier.out_proj"}},
      {"token_classifier",                   {"classifier"}},
      {"span",                               {"qa_outputs"}},
  });
  // clang-format on
  table.prefix = "roberta.";
  table.unprefixed = {"lm_head.", "classifier.", "qa_outputs."};
  table.of_heads = {"pooler.", "lm_head.", "classifier.", "qa_outputs."};
  if (config.tie_word_embeddings) {
    table.tied = {{"lm_head.decoder.weight", "embeddings.word_embeddings.weight"},
                  {"lm_head.decoder.bias", "lm_head.bias"}};
    table.renamed = {{"lm_head.bias", "lm_head.decoder.bias"}};
  } else {
    add_weights_and_biases(table, {{"decoder", {"lm_head.decoder"}}});
    // transformers 4 kept one bias for both.
    table.renamed = {{"lm_head.decoder.bias", "lm_head.bias"}};
  }
  table.ignored = {"embeddings.position_ids"};
  return table;
}

}  // namespace zoo::roberta
