#include "models/bert/family.h"

#include "models/bert/config_reader.h"
#include "models/bert/weight_names.h"
#include "models/encoder/encoder.h"

namespace zoo::bert {
namespace {

struct Size {
  std::int64_t layers, heads, hidden;
};

TransformerConfig bert_config(const Size& size, std::int64_t vocab_size) {
  TransformerConfig config;
  config.shape = Shape::kEncoder;
  config.norm_placement = NormPlacement::kPost;
  config.vocab_size = vocab_size;
  config.hidden_size = size.hidden;
  config.num_layers = size.layers;
  config.num_heads = size.heads;
  config.max_positions = 512;
  config.type_vocab_size = 2;
  config.pad_token_id = 0;
  config.activation = Activation::kGelu;
  config.layer_norm_eps = 1e-12;
  config.embedding_dropout = config.attention_dropout = config.dropout = 0.1;
  config.classifier_dropout = config.token_dropout = 0.1;
  return config;
}

constexpr Size kTiny{.layers = 2, .heads = 2, .hidden = 128};
constexpr Size kMini{.layers = 4, .heads = 4, .hidden = 256};
constexpr Size kBase{.layers = 12, .heads = 12, .hidden = 768};
constexpr Size kLarge{.layers = 24, .heads = 16, .hidden = 1024};
constexpr std::int64_t kUncased = 30522, kCased = 28996;  // sizes of the published vocabularies

std::shared_ptr<Model> build(const TransformerConfig& config, Head head) {
  return encoder::build(config, head, {});
}

}  // namespace

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
                {Head::kMaskedLm, "BertForPreTraining"}},
      .presets = {{"bert-base-uncased", "BERT base", bert_config(kBase, kUncased)},
                  {"bert-large-uncased", "BERT large", bert_config(kLarge, kUncased)},
                  {"bert-base-cased", "BERT base, cased", bert_config(kBase, kCased)},
                  {"bert-large-cased", "BERT large, cased", bert_config(kLarge, kCased)},
                  {"bert-tiny", "BERT of 2 layers (Turc et al., 2019)", bert_config(kTiny, kUncased)},
                  {"bert-mini", "BERT of 4 layers (Turc et al., 2019)", bert_config(kMini, kUncased)}},
      .read_config = read_config,
      .write_config = write_config,
      .build = build,
      .weight_table = weight_table,
  };
}

}  // namespace zoo::bert
