#include "models/tutorial/config_reader.h"

#include <nlohmann/json.hpp>

#include "models/formats/config_words.h"

namespace zoo::tutorial {
namespace {

TransformerConfig read_sizes(const ConfigReader& reader) {
  TransformerConfig config;
  config.vocab_size = reader.require_int("vocab_size");
  config.hidden_size = reader.require_int("n_embd");
  config.max_positions = reader.get_int("n_positions", 1024);
  config.num_layers = config.num_heads = 1;
  config.position = PositionKind::kNone;
  config.tie_word_embeddings = false;
  return config;
}

nlohmann::json write_sizes(const TransformerConfig& config) {
  return {{"vocab_size", config.vocab_size},
          {"n_embd", config.hidden_size},
          {"n_positions", config.max_positions}};
}

}  // namespace

TransformerConfig read_language_config(const nlohmann::json& json, const std::string& source) {
  return read_sizes(ConfigReader(json, source));
}

nlohmann::json write_language_config(const TransformerConfig& config) {
  return write_sizes(config);
}

TransformerConfig read_classifier_config(const nlohmann::json& json, const std::string& source) {
  const ConfigReader reader(json, source);
  TransformerConfig config = read_sizes(reader);
  config.shape = Shape::kEncoder;
  config.num_heads = reader.get_int("n_head", 1);
  config.attention_bias = false;
  read_labels(reader, config);
  return config;
}

nlohmann::json write_classifier_config(const TransformerConfig& config) {
  nlohmann::json json = write_sizes(config);
  json["n_head"] = config.num_heads;
  write_pad_token_and_labels(config, json);
  return json;
}

}  // namespace zoo::tutorial
