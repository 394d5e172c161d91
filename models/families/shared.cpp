#include "models/families/shared.h"

#include <nlohmann/json.hpp>

namespace zoo {
namespace {

using C = TransformerConfig;

}  // namespace

std::vector<ConfigKey> concatenated(std::initializer_list<std::vector<ConfigKey>> parts) {
  std::vector<ConfigKey> keys;
  for (const auto& part : parts) keys.insert(keys.end(), part.begin(), part.end());
  return keys;
}

ConfigKey layer_types_key(bool (*by_default)(std::int64_t layer)) {
  const auto read = [by_default](const ConfigReader& reader, C& config) {
    if (!reader.has("layer_types")) {
      if (by_default == nullptr) return;
      config.window_layers.clear();
      for (std::int64_t i = 0; i < config.num_layers; ++i) config.window_layers.push_back(by_default(i));
      return;
    }
    config.window_layers.clear();
    const nlohmann::json& types = reader.at("layer_types");
    if (!types.is_array() || static_cast<std::int64_t>(types.size()) != config.num_layers)
      reader.refuse("layer_types", "expected a list of one type for each layer");
    for (const nlohmann::json& type : types) {
      if (type != "sliding_attention" && type != "full_attention")
        reader.refuse("layer_types", "expected sliding_attention or full_attention for each layer");
      config.window_layers.push_back(type == "sliding_attention");
      if (type == "sliding_attention" && config.sliding_window == 0)
        reader.refuse("layer_types",
                      "expected full_attention for each layer, since there is no sliding_window");
    }
  };
  const auto write = [](const C& config, nlohmann::json& json) {
    for (std::int64_t i = 0; i < config.num_layers; ++i)
      json["layer_types"].push_back(config.has_window(i) ? "sliding_attention" : "full_attention");
  };
  return {"layer_types", read, write};
}

std::vector<Family::HeadEntry> decoder_heads(const std::string& name) {
  return {{Head::kCausalLm, name + "ForCausalLM"},
          {Head::kBase, name + "Model"},
          {Head::kSequenceClassification, name + "ForSequenceClassification"}};
}

std::vector<std::int64_t> query_key_value_rows(const TransformerConfig& config) {
  const std::int64_t width = config.num_heads * config.head_size();
  const std::int64_t kv_width = config.kv_heads() * config.head_size();
  return {width, kv_width, kv_width};
}

}  // namespace zoo
