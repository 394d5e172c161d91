#include "models/tutorial/family.h"

#include "models/tutorial/config_reader.h"
#include "models/tutorial/models.h"

namespace zoo::tutorial {
namespace {

struct Size {
  std::int64_t vocabulary, width, heads, labels;
};

TransformerConfig config_of(const Size& size) {
  TransformerConfig config;
  config.shape = size.labels > 0 ? Shape::kEncoder : Shape::kDecoder;
  config.vocab_size = size.vocabulary;
  config.hidden_size = size.width;
  config.num_layers = 1;
  config.num_heads = size.heads;
  config.max_positions = 1024;
  config.position = PositionKind::kNone;
  config.attention_bias = size.labels == 0;
  config.tie_word_embeddings = false;
  if (size.labels > 0) config.num_labels = size.labels;
  return config;
}

template <class Kind>
std::shared_ptr<Model> build(const TransformerConfig& config, Head) {
  return std::make_shared<Kind>(config);
}

// The names of the tutorial's own modules.
WeightTable word_prediction_names(const TransformerConfig&) {
  return {.names = {{"embed.weight", {"embed.weight"}},
                    {"linear.weight", {"linear.weight"}},
                    {"linear.bias", {"linear.bias"}}}};
}

WeightTable first_word_names(const TransformerConfig&) {
  return {.names = {{"embed.weight", {"embed.weight"}},
                    {"qkv.weight", {"W_q.weight", "W_k.weight", "W_v.weight"}},
                    {"fc.weight", {"fc.weight"}},
                    {"fc.bias", {"fc.bias"}}}};
}

WeightTable last_word_names(const TransformerConfig&) {
  return {.names = {{"embed.weight", {"embed.weight"}},
                    {"attention.qkv.weight", {"W_q.weight", "W_k.weight", "W_v.weight"}},
                    {"attention.out.weight", {"W_o.weight"}},
                    {"fc.weight", {"fc.weight"}},
                    {"fc.bias", {"fc.bias"}}}};
}

}  // namespace

Family embeddings_family() {
  return {
      .model_type = "tutorial-embeddings",
      .description = "a tutorial's word prediction: an embedding and a projection, no attention",
      .heads = {{Head::kCausalLm, "WordPredictionModel"}},
      .presets = {{"tutorial-embeddings", "animals and fruits in two dimensions", config_of({13, 2, 1, 0})}},
      .read_config = read_language_config,
      .write_config = write_language_config,
      .build = build<WordPrediction>,
      .weight_table = word_prediction_names,
  };
}

Family ambiguous_family() {
  return {
      .model_type = "tutorial-ambiguous",
      .description = "a tutorial's single head: a phrase classified by what its first word attends to",
      .heads = {{Head::kSequenceClassification, "TinyTransformer"}},
      .presets = {{"tutorial-ambiguous", "'fruit fly' or 'fruit salad'", config_of({6, 8, 1, 4})}},
      .read_config = read_classifier_config,
      .write_config = write_classifier_config,
      .build = build<FirstWordClassifier>,
      .weight_table = first_word_names,
  };
}

Family disagreement_family() {
  return {
      .model_type = "tutorial-disagreement",
      .description = "a tutorial's multi-head attention: a class from the last word, heads kept apart",
      .heads = {{Head::kSequenceClassification, "RegularizedMultiHead"}},
      .presets = {{"tutorial-disagreement", "colour and kind, a head each", config_of({9, 64, 2, 9})}},
      .read_config = read_classifier_config,
      .write_config = write_classifier_config,
      .build = build<LastWordClassifier>,
      .weight_table = last_word_names,
  };
}

}  // namespace zoo::tutorial
