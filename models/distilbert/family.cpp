#include "models/distilbert/family.h"

#include "models/distilbert/config_reader.h"
#include "models/distilbert/weight_names.h"
#include "models/encoder/encoder.h"

namespace zoo::distilbert {
namespace {

TransformerConfig distilbert_config(std::int64_t vocab_size) {
  TransformerConfig config;
  config.shape = Shape::kEncoder;
  config.norm_placement = NormPlacement::kPost;
  config.vocab_size = vocab_size;
  config.hidden_size = 768;
  config.num_layers = 6;
  config.num_heads = 12;
  config.max_positions = 512;
  config.pad_token_id = 0;
  config.activation = Activation::kGelu;
  config.layer_norm_eps = 1e-12;
  config.embedding_dropout = config.attention_dropout = config.dropout = config.token_dropout = 0.1;
  config.classifier_dropout = 0.2;
  config.answer_dropout = 0.1;
  return config;
}

std::shared_ptr<Model> build(const TransformerConfig& config, Head head) {
  return encoder::build(
      config, head,
      {.sentence_vector = encoder::SentenceVector::kRelu, .has_pooler = false, .keeps_spare_bias = false});
}

}  // namespace

Family family() {
  return {
      .model_type = "distilbert",
      .description = "DistilBERT (Sanh et al., 2019): BERT with half its layers, without segments or pooler",
      .heads = {{Head::kBase, "DistilBertModel"},
                {Head::kMaskedLm, "DistilBertForMaskedLM"},
                {Head::kSequenceClassification, "DistilBertForSequenceClassification"},
                {Head::kTokenClassification, "DistilBertForTokenClassification"},
                {Head::kQuestionAnswering, "DistilBertForQuestionAnswering"}},
      .presets = {{"distilbert-base-uncased", "DistilBERT", distilbert_config(30522)},
                  {"distilbert-base-cased", "DistilBERT, cased", distilbert_config(28996)}},
      .read_config = read_config,
      .write_config = write_config,
      .build = build,
      .weight_table = weight_table,
  };
}

}  // namespace zoo::distilbert
