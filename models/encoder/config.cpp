#include "models/encoder/config.h"

#include <nlohmann/json.hpp>

#include "data/base/error.h"

namespace zoo::encoder {
namespace {

// What transformers 4 wrote and 5 does not, and what makes another model of an encoder.
void refuse_other_models(const ConfigReader& reader) {
  if (reader.get_string("position_embedding_type", "absolute") != "absolute") {
    reader.refuse("position_embedding_type", "expected absolute");
  }
  if (reader.get_bool("is_decoder", false)) reader.refuse("is_decoder", "expected false");
  if (reader.get_bool("add_cross_attention", false)) reader.refuse("add_cross_attention", "expected false");
}

}  // namespace

TransformerConfig read_shared_keys(const ConfigReader& reader, const ConfigDefaults& defaults) {
  TransformerConfig config;
  config.shape = Shape::kEncoder;
  config.norm_placement = NormPlacement::kPost;
  config.vocab_size = reader.require_int("vocab_size");
  config.hidden_size = reader.require_int("hidden_size");
  config.num_layers = reader.require_int("num_hidden_layers");
  config.num_heads = reader.require_int("num_attention_heads");
  config.intermediate_size = reader.require_int("intermediate_size");
  config.max_positions = reader.require_int("max_position_embeddings");
  config.type_vocab_size = reader.get_int("type_vocab_size", 2);
  config.activation = read_activation(reader, "hidden_act", defaults.hidden_act);
  config.layer_norm_eps = reader.get_double("layer_norm_eps", 1e-12);
  config.initializer_range = reader.get_double("initializer_range", 0.02);
  config.dropout = reader.get_double("hidden_dropout_prob", defaults.dropout);
  config.embedding_dropout = config.dropout;
  config.attention_dropout = reader.get_double("attention_probs_dropout_prob", defaults.dropout);
  config.tie_word_embeddings = reader.get_bool("tie_word_embeddings", true);
  read_pad_token(reader, defaults.pad_token_id, config);
  read_labels(reader, config);
  refuse_other_models(reader);
  return config;
}

nlohmann::json write_shared_keys(const TransformerConfig& config, const char* family) {
  check_expressible(config, family);
  if (config.type_vocab_size == 0)
    throw Error(family, "'s config.json cannot say that there are no token types");
  nlohmann::json json{
      {"vocab_size", config.vocab_size},
      {"hidden_size", config.hidden_size},
      {"num_hidden_layers", config.num_layers},
      {"num_attention_heads", config.num_heads},
      {"intermediate_size", config.feed_forward_size()},
      {"max_position_embeddings", config.max_positions},
      {"type_vocab_size", config.type_vocab_size},
      {"hidden_act", activation_word(config.activation)},
      {"layer_norm_eps", config.layer_norm_eps},
      {"initializer_range", config.initializer_range},
      {"hidden_dropout_prob", config.dropout},
      {"attention_probs_dropout_prob", config.attention_dropout},
      {"tie_word_embeddings", config.tie_word_embeddings},
  };
  write_pad_token_and_labels(config, json);
  return json;
}

void check_expressible(const TransformerConfig& config, const char* family) {
  const auto need = [family](bool good, const char* what) {
    if (!good) throw Error(family, "'s config.json cannot say ", what);
  };
  need(config.shape == Shape::kEncoder, "a model other than an encoder");
  need(config.position == PositionKind::kLearned, "positions that are not learned");
  need(config.norm == NormKind::kLayerNorm && config.norm_placement == NormPlacement::kPost,
       "a norm other than a LayerNorm after each sublayer");
  need(config.kv_heads() == config.num_heads && config.head_size() * config.num_heads == config.hidden_size,
       "heads of other sizes than hidden_size / num_heads, or shared ones");
  need(config.attention_bias && config.feed_forward_bias && config.norm_bias, "layers without biases");
}

void read_classifier_dropout(const ConfigReader& reader, const char* key, double fallback,
                             TransformerConfig& config) {
  config.classifier_dropout = config.token_dropout = reader.get_double(key, fallback);
}

}  // namespace zoo::encoder
