#include "models/distilbert/config_reader.h"

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "models/encoder/config.h"

namespace zoo::distilbert {
namespace {

constexpr double kNormEpsilon = 1e-12;  // no key says it

}  // namespace

TransformerConfig read_config(const nlohmann::json& json, const std::string& source) {
  const ConfigReader reader(json, source);
  TransformerConfig config;
  config.shape = Shape::kEncoder;
  config.norm_placement = NormPlacement::kPost;
  config.layer_norm_eps = kNormEpsilon;
  config.vocab_size = reader.require_int("vocab_size");
  config.hidden_size = reader.require_int("dim");
  config.num_layers = reader.require_int("n_layers");
  config.num_heads = reader.require_int("n_heads");
  config.intermediate_size = reader.require_int("hidden_dim");
  config.max_positions = reader.require_int("max_position_embeddings");
  config.activation = read_activation(reader, "activation", "gelu");
  config.initializer_range = reader.get_double("initializer_range", 0.02);
  config.embedding_dropout = config.dropout = reader.get_double("dropout", 0.1);
  config.token_dropout = config.dropout;
  config.attention_dropout = reader.get_double("attention_dropout", 0.1);
  config.classifier_dropout = reader.get_double("seq_classif_dropout", 0.2);
  config.answer_dropout = reader.get_double("qa_dropout", 0.1);
  config.tie_word_embeddings = reader.get_bool("tie_word_embeddings", true);
  // With sinusoidal_pos_embds the table of positions begins as sinusoids; it is in the checkpoint all the
  // same.
  reader.get_bool("sinusoidal_pos_embds", false);
  read_pad_token(reader, 0, config);
  read_labels(reader, config);
  return config;
}

nlohmann::json write_config(const TransformerConfig& config) {
  encoder::check_expressible(config, "DistilBERT");
  if (config.layer_norm_eps != kNormEpsilon) {
    throw Error("DistilBERT's config.json cannot say a layer_norm_eps of ", config.layer_norm_eps);
  }
  if (config.type_vocab_size > 0) throw Error("DistilBERT's config.json cannot say token types");
  nlohmann::json json{
      {"vocab_size", config.vocab_size},
      {"dim", config.hidden_size},
      {"n_layers", config.num_layers},
      {"n_heads", config.num_heads},
      {"hidden_dim", config.feed_forward_size()},
      {"max_position_embeddings", config.max_positions},
      {"activation", activation_word(config.activation)},
      {"initializer_range", config.initializer_range},
      {"dropout", config.dropout},
      {"attention_dropout", config.attention_dropout},
      {"seq_classif_dropout", config.classifier_dropout},
      {"qa_dropout", config.answer_dropout},
      {"sinusoidal_pos_embds", false},
      {"tie_word_embeddings", config.tie_word_embeddings},
  };
  write_pad_token_and_labels(config, json);
  return json;
}

}  // namespace zoo::distilbert
