#include "models/families/kinds/shared.h"

#include <nlohmann/json.hpp>

#include "models/layers/config_fields.h"

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
      if (by_default != nullptr) config.window_layers = by_layer(config.num_layers, by_default);
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
  return {.name = "layer_types", .read = read, .write = write, .by_layer = true};
}

ConfigKey required_pad_token_key() {
  ConfigKey key = pad_token_key();
  key.read = [read = key.read](const ConfigReader& reader, C& config) {
    read(reader, config);
    if (config.pad_token_id < 0)
      reader.refuse("pad_token_id", "expected an id: positions are counted from it");
  };
  return key;
}

std::vector<Family::HeadEntry> decoder_heads(const std::string& name) {
  return {{Head::kCausalLm, name + "ForCausalLM"},
          {Head::kBase, name + "Model"},
          {Head::kSequenceClassification, name + "ForSequenceClassification"}};
}

std::vector<Family::HeadEntry> encoder_heads(const std::string& name) {
  return {{Head::kBase, name + "Model"},
          {Head::kMaskedLm, name + "ForMaskedLM"},
          {Head::kSequenceClassification, name + "ForSequenceClassification"},
          {Head::kTokenClassification, name + "ForTokenClassification"},
          {Head::kQuestionAnswering, name + "ForQuestionAnswering"}};
}

std::vector<std::int64_t> query_key_value_rows(const TransformerConfig& config) {
  const std::int64_t width = config.num_heads * config.head_size();
  const std::int64_t kv_width = config.kv_heads() * config.head_size();
  return {width, kv_width, kv_width};
}

std::vector<WeightName> joint_projections(const TransformerConfig& config, const std::string& block,
                                          const std::string& attention) {
  return {{"stack.blocks.{}.attention.qkv",
           {attention + ".query_key_value"},
           WeightLayout::kByHead,
           query_key_value_rows(config),
           config.kv_heads()},
          {"stack.blocks.{}.attention.out", {attention + ".dense"}},
          {"stack.blocks.{}.feed_forward.up", {block + ".mlp.dense_h_to_4h"}},
          {"stack.blocks.{}.feed_forward.down", {block + ".mlp.dense_4h_to_h"}}};
}

void add_decoder_heads(WeightTable& table, const TransformerConfig& config, const std::string& prefix,
                       const std::string& embedding, const std::string& lm_head) {
  table.prefix = prefix;
  table.unprefixed = table.of_heads = {lm_head + ".", "score."};
  if (config.tie_word_embeddings) {
    table.tied = {{lm_head + ".weight", embedding + ".weight"}};
  } else {
    table.names.push_back({"lm_head.weight", {lm_head + ".weight"}});
  }
}

std::vector<bool> by_layer(std::int64_t count, const std::function<bool(std::int64_t layer)>& has) {
  std::vector<bool> layers;
  if (count > kMostLayers) return layers;  // validate() refuses the configuration
  for (std::int64_t i = 0; i < count; ++i) layers.push_back(has(i));
  return layers;
}

}  // namespace zoo
