#include "models/albert/config_reader.h"

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "models/encoder/config.h"

namespace zoo::albert {

TransformerConfig read_config(const nlohmann::json& json, const std::string& source) {
  const ConfigReader reader(json, source);
  TransformerConfig config =
      encoder::read_shared_keys(reader, {.hidden_act = "gelu_new", .dropout = 0.0, .pad_token_id = 0});
  encoder::read_classifier_dropout(reader, "classifier_dropout_prob", 0.1, config);
  config.embedding_size = reader.require_int("embedding_size");
  if (config.embedding_size <= 0) reader.refuse("embedding_size", "expected a positive number");
  config.sharing = Sharing::kAllLayers;
  // The published models share one layer; groups of layers, and layers within a group, were never published.
  for (const char* key : {"num_hidden_groups", "inner_group_num"}) {
    if (reader.get_int(key, 1) != 1) reader.refuse(key, "expected 1");
  }
  return config;
}

nlohmann::json write_config(const TransformerConfig& config) {
  if (config.sharing != Sharing::kAllLayers) {
    throw Error("ALBERT's config.json cannot say layers that share nothing");
  }
  nlohmann::json json = encoder::write_shared_keys(config, "ALBERT");
  json["embedding_size"] = config.embedding_width();
  json["classifier_dropout_prob"] = config.classifier_dropout;
  json["num_hidden_groups"] = json["inner_group_num"] = 1;
  return json;
}

}  // namespace zoo::albert
