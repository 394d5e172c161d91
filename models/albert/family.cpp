#include "models/albert/family.h"

#include "models/albert/config_reader.h"
#include "models/albert/weight_names.h"
#include "models/encoder/encoder.h"

namespace zoo::albert {
namespace {

struct Size {
  std::int64_t layers, heads, hidden;
};

// Version 2 of the published models, Lan et al. (2020), table 1.
TransformerConfig albert_config(const Size& size) {
  TransformerConfig config;
  config.shape = Shape::kEncoder;
  config.norm_placement = NormPlacement::kPost;
  config.sharing = Sharing::kAllLayers;
  config.vocab_size = 30000;
  config.embedding_size = 128;
  config.hidden_size = size.hidden;
  config.num_layers = size.layers;
  config.num_heads = size.heads;
  config.max_positions = 512;
  config.type_vocab_size = 2;
  config.pad_token_id = 0;
  config.activation = Activation::kGeluTanh;
  config.layer_norm_eps = 1e-12;
  config.classifier_dropout = config.token_dropout = 0.1;
  return config;
}

std::shared_ptr<Model> build(const TransformerConfig& config, Head head) {
  return encoder::build(config, head, {});
}

}  // namespace

Family family() {
  return {
      .model_type = "albert",
      .description =
          "ALBERT (Lan et al., 2020): BERT with one layer's weights for all and a factorised embedding",
      .heads = {{Head::kBase, "AlbertModel"},
                {Head::kMaskedLm, "AlbertForMaskedLM"},
                {Head::kSequenceClassification, "AlbertForSequenceClassification"},
                {Head::kTokenClassification, "AlbertForTokenClassification"},
                {Head::kQuestionAnswering, "AlbertForQuestionAnswering"},
                {Head::kMaskedLm, "AlbertForPreTraining"}},
      .presets = {{"albert-base-v2", "ALBERT base", albert_config({12, 12, 768})},
                  {"albert-large-v2", "ALBERT large", albert_config({24, 16, 1024})},
                  {"albert-xlarge-v2", "ALBERT xlarge", albert_config({24, 16, 2048})},
                  {"albert-xxlarge-v2", "ALBERT xxlarge", albert_config({12, 64, 4096})}},
      .read_config = read_config,
      .write_config = write_config,
      .build = build,
      .weight_table = weight_table,
  };
}

}  // namespace zoo::albert
