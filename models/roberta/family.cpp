#include "models/roberta/family.h"

#include "models/encoder/encoder.h"
#include "models/roberta/config_reader.h"
#include "models/roberta/weight_names.h"

namespace zoo::roberta {
namespace {

struct Size {
  std::int64_t layers, heads, hidden;
};

TransformerConfig roberta_config(const Size& size) {
  TransformerConfig config;
  config.shape = Shape::kEncoder;
  config.norm_placement = NormPlacement::kPost;
  config.vocab_size = 50265;
  config.hidden_size = size.hidden;
  config.num_layers = size.layers;
  config.num_heads = size.heads;
  config.max_positions = 514;
  config.position_count = PositionCount::kNotPadding;
  config.type_vocab_size = 1;
  config.pad_token_id = 1;
  config.activation = Activation::kGelu;
  config.layer_norm_eps = 1e-5;
  config.embedding_dropout = config.attention_dropout = config.dropout = 0.1;
  config.classifier_dropout = config.token_dropout = 0.1;
  return config;
}

std::shared_ptr<Model> build(const TransformerConfig& config, Head head) {
  return encoder::build(
      config, head,
      {.sentence_vector = encoder::SentenceVector::kTanh, .prediction_activation = Activation::kGelu});
}

}  // namespace

Family family() {
  return {
      .model_type = "roberta",
      .description =
          "RoBERTa (Liu et al., 2019): BERT without next sentences, positions counted behind the padding's",
      .heads = {{Head::kBase, "RobertaModel"},
                {Head::kMaskedLm, "RobertaForMaskedLM"},
                {Head::kSequenceClassification, "RobertaForSequenceClassification"},
                {Head::kTokenClassification, "RobertaForTokenClassification"},
                {Head::kQuestionAnswering, "RobertaForQuestionAnswering"}},
      .presets = {{"roberta-base", "RoBERTa base", roberta_config({12, 12, 768})},
                  {"roberta-large", "RoBERTa large", roberta_config({24, 16, 1024})}},
      .read_config = read_config,
      .write_config = write_config,
      .build = build,
      .weight_table = weight_table,
  };
}

}  // namespace zoo::roberta
