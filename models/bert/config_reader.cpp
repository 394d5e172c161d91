#include "models/bert/config_reader.h"

#include <nlohmann/json.hpp>

#include "models/encoder/config.h"

namespace zoo::bert {

TransformerConfig read_config(const nlohmann::json& json, const std::string& source) {
  const ConfigReader reader(json, source);
  TransformerConfig config = encoder::read_shared_keys(reader, {});
  encoder::read_classifier_dropout(reader, "classifier_dropout", config.dropout, config);
  return config;
}

nlohmann::json write_config(const TransformerConfig& config) {
  nlohmann::json json = encoder::write_shared_keys(config, "BERT");
  json["classifier_dropout"] = nullptr;
  if (config.classifier_dropout != config.dropout) json["classifier_dropout"] = config.classifier_dropout;
  return json;
}

}  // namespace zoo::bert
