#include "models/roberta/config_reader.h"

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "models/encoder/config.h"

namespace zoo::roberta {

TransformerConfig read_config(const nlohmann::json& json, const std::string& source) {
  const ConfigReader reader(json, source);
  TransformerConfig config = encoder::read_shared_keys(reader, {.pad_token_id = 1});
  encoder::read_classifier_dropout(reader, "classifier_dropout", config.dropout, config);
  config.position_count = PositionCount::kNotPadding;
  if (config.pad_token_id < 0) {
    reader.refuse("pad_token_id", "expected an id: RoBERTa's positions are counted from it");
  }
  return config;
}

nlohmann::json write_config(const TransformerConfig& config) {
  if (config.position_count != PositionCount::kNotPadding) {
    throw Error("RoBERTa's config.json cannot say positions that count padding");
  }
  nlohmann::json json = encoder::write_shared_keys(config, "RoBERTa");
  json["classifier_dropout"] = nullptr;
  if (config.classifier_dropout != config.dropout) json["classifier_dropout"] = config.classifier_dropout;
  return json;
}

}  // namespace zoo::roberta
