#include "models/bert/weight_names.h"

namespace zoo::bert {

WeightTable weight_table(const TransformerConfig& config) {
  WeightTable table;
  // clang-format off
  table.names = {
      {"embeddings.word.weight",       {"embeddings.word_embeddings.weight"}},
      {"embeddings.position.weight",   {"embeddings.position_embeddings.weight"}},
      {"embeddings.token_type.weight", {"embeddings.token_type_embeddings.weight"}},
      {"prediction_bias",              {"cls.predictions.bias"}},
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
      {"prediction_dense",                   {"cls.predictions.transform.dense"}},
      {"prediction_norm",                    {"cls.predictions.transform.LayerNorm"}},
      {"next_sentence",                      {"cls.seq_relationship"}},
      {"sentence_classifier",                {"classifier"}},
      {"token_classifier",                   {"classifier"}},
      {"span",                               {"qa_outputs"}},
  });
  // clang-format on
  table.prefix = "bert.";
  table.unprefixed = {"cls.", "classifier.", "qa_outputs."};
  table.of_heads = {"pooler.", "cls.", "classifier.", "qa_outputs."};
  if (config.tie_word_embeddings) {
    table.renamed = {{"cls.predictions.bias", "cls.predictions.decoder.bias"}};
    table.tied = {{"cls.predictions.decoder.weight", "embeddings.word_embeddings.weight"},
                  {"cls.predictions.decoder.bias", "cls.predictions.bias"}};
  } else {
    add_weights_and_biases(table, {{"decoder", {"cls.predictions.decoder"}}});
    // transformers 4 kept one bias for both.
    table.renamed = {{"cls.predictions.decoder.bias", "cls.predictions.bias"}};
  }
  // As in the checkpoints that came with the paper.
  table.renamed.insert(table.renamed.end(),
                       {{".LayerNorm.weight", ".LayerNorm.gamma"}, {".LayerNorm.bias", ".LayerNorm.beta"}});
  table.ignored = {"embeddings.position_ids"};
  return table;
}

}  // namespace zoo::bert
