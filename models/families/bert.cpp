// BERT (Devlin et al., 2019): a post-LN encoder with learned positions, segments and GELU, pre-trained to
// predict masked words and whether one sentence follows another.

#include "models/families/kinds/bert_kind.h"

namespace zoo::family::bert {

WeightTable weights(const C& config) {
  WeightTable table{.names = bert_weights(), .prefix = "bert."};
  add_weights_and_biases(table, {{"prediction_dense", {"cls.predictions.transform.dense"}},
                                 {"prediction_norm", {"cls.predictions.transform.LayerNorm"}},
                                 {"next_sentence", {"cls.seq_relationship"}},
                                 {"sentence_classifier", {"classifier"}}});
  add_masked_lm_projection(table, config, "cls.predictions.decoder", "cls.predictions.bias");
  table.unprefixed = {"cls.", "classifier.", "qa_outputs."};
  table.of_heads = {"pooler."};
  table.ignored = {"embeddings.position_ids"};
  return table;
}

C sized(std::int64_t vocab_size, std::int64_t layers, std::int64_t heads, std::int64_t hidden) {
  return of_size(bert_base(), {vocab_size, hidden, layers, heads}, /*max_positions=*/512);
}

constexpr std::int64_t kUncased = 30522, kCased = 28996;  // sizes of the published vocabularies

Family family() {
  return {
      .model_type = "bert",
      .description =
          "BERT (Devlin et al., 2019): encoder, post-LayerNorm, learned positions, segments, GELU, tied",
      .heads = {{Head::kBase, "BertModel"},
                {Head::kMaskedLm, "BertForMaskedLM"},
                {Head::kNextSentence, "BertForNextSentencePrediction"},
                {Head::kSequenceClassification, "BertForSequenceClassification"},
                {Head::kTokenClassification, "BertForTokenClassification"},
                {Head::kQuestionAnswering, "BertForQuestionAnswering"},
                {Head::kPretraining, "BertForPreTraining"}},
      .base = bert_base(),
      .keys = {"BERT",
               concatenated(bert_keys(),
                            {classifier_dropout_key(),
                             ignored_keys({"directionality", "pooler_fc_size", "pooler_num_attention_heads",
                                           "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type"})})},
      .presets = {{"bert-base-uncased", "BERT base", sized(kUncased, 12, 12, 768)},
                  {"bert-large-uncased", "BERT large", sized(kUncased, 24, 16, 1024)},
                  {"bert-base-cased", "BERT base, cased", sized(kCased, 12, 12, 768)},
                  {"bert-large-cased", "BERT large, cased", sized(kCased, 24, 16, 1024)},
                  {"bert-tiny", "BERT of 2 layers (Turc et al., 2019)", sized(kUncased, 2, 2, 128)},
                  {"bert-mini", "BERT of 4 layers (Turc et al., 2019)", sized(kUncased, 4, 4, 256)}},
      .build = encoder::builder({}),
      .weight_table = weights,
  };
}

}  // namespace zoo::family::bert
