#include "models/families/kinds/shared.h"

#include <nlohmann/json.hpp>

#include "models/layers/config_fields.h"

namespace zoo {

using C = TransformerConfig;

std::vector<ConfigKey> concatenated(std::initializer_list<std::vector<ConfigKey>> parts) {
  std::vector<ConfigKey> keys;
  for (const auto& part : parts) keys.insert(keys.end(), part.begin(), part.end());
  return keys;
}

std::vector<ConfigKey> usual_size_keys() {
  return {required_key("vocab_size", &C::vocab_size), required_key("hidden_size", &C::hidden_size),
          required_key("num_hidden_layers", &C::num_layers),
          required_key("num_attention_heads", &C::num_heads),
          required_key("intermediate_size", &C::intermediate_size)};
}

std::vector<ConfigKey> usual_end_keys() {
  return {optional_key("initializer_range", &C::initializer_range),
          optional_key("tie_word_embeddings", &C::tie_word_embeddings), pad_token_key(), label_keys()};
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

ConfigKey then_read(ConfigKey key, const std::function<void(const ConfigReader&, C&)>& read) {
  key.read = [first = key.read, read](const ConfigReader& reader, C& config) {
    first(reader, config);
    read(reader, config);
  };
  return key;
}

template <class Choice>
ConfigKey choice_key(const std::string& name, Choice C::*field, Choice if_true, Choice if_false) {
  const auto read = [=](const ConfigReader& reader, C& config) {
    config.*field = reader.get_bool(name.c_str(), config.*field == if_true) ? if_true : if_false;
  };
  const auto write = [=](const C& config, nlohmann::json& json) { json[name] = config.*field == if_true; };
  return {name, read, write};
}

template ConfigKey choice_key(const std::string&, std::int64_t C::*, std::int64_t, std::int64_t);
template ConfigKey choice_key(const std::string&, ExpertWeights C::*, ExpertWeights, ExpertWeights);
template ConfigKey choice_key(const std::string&, NormPlacement C::*, NormPlacement, NormPlacement);
template ConfigKey choice_key(const std::string&, Shape C::*, Shape, Shape);
template ConfigKey choice_key(const std::string&, SublayerOrder C::*, SublayerOrder, SublayerOrder);

ConfigKey same_size_key(const std::string& name, std::int64_t C::*field, const std::string& other) {
  const auto read = [=](const ConfigReader& reader, C& config) {
    if (reader.get_int(name.c_str(), config.*field) != config.*field)
      reader.refuse(name.c_str(), "expected " + other + ", " + std::to_string(config.*field));
  };
  const auto write = [=](const C& config, nlohmann::json& json) { json[name] = config.*field; };
  return {name, read, write};
}

std::vector<ConfigKey> gpt_keys() {
  return {required_key("vocab_size", &C::vocab_size),
          required_key("n_embd", &C::hidden_size),
          required_key("n_layer", &C::num_layers),
          required_key("n_head", &C::num_heads),
          optional_key("n_inner", &C::intermediate_size),
          activation_key("activation_function"),
          optional_key("layer_norm_epsilon", &C::layer_norm_eps),
          optional_key("initializer_range", &C::initializer_range),
          optional_key("embd_pdrop", &C::embedding_dropout),
          optional_key("attn_pdrop", &C::attention_dropout),
          optional_key("resid_pdrop", &C::dropout),
          pad_token_key(),
          label_keys(),
          alias_keys({{"hidden_size", "n_embd"},
                      {"max_position_embeddings", "n_positions"},
                      {"num_attention_heads", "n_head"},
                      {"num_hidden_layers", "n_layer"}}),
          ignored_keys({"summary_activation", "summary_first_dropout", "summary_proj_to_labels",
                        "summary_type", "summary_use_proj"})};
}

std::vector<std::string> gpt_mask_buffers() { return {"h.{}.attn.bias", "h.{}.attn.masked_bias"}; }

ConfigKey required_pad_token_key() {
  return then_read(pad_token_key(), [](const ConfigReader& reader, C& config) {
    if (config.pad_token_id < 0)
      reader.refuse("pad_token_id", "expected an id: positions are counted from it");
  });
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

TransformerConfig of_size(TransformerConfig config, const Sizes& sizes, std::int64_t max_positions) {
  config.vocab_size = sizes.vocabulary;
  config.hidden_size = sizes.hidden;
  config.num_layers = sizes.layers;
  config.num_heads = sizes.heads;
  if (sizes.inner > 0) config.intermediate_size = sizes.inner;
  if (sizes.kv_heads > 0) config.num_kv_heads = sizes.kv_heads;
  if (max_positions > 0) config.max_positions = max_positions;
  return config;
}

std::vector<std::string> q_k_v(const std::string& before, const std::string& after) {
  return {before + "q" + after, before + "k" + after, before + "v" + after};
}

std::vector<WeightName> joint_projections(const TransformerConfig& config, const std::string& block,
                                          const std::string& attention) {
  return {{"stack.blocks.{}.attention.qkv",
           {attention + ".query_key_value"},
           WeightLayout::kByHead,
           config.query_key_value_rows(),
           config.kv_heads()},
          {"stack.blocks.{}.attention.out", {attention + ".dense"}},
          {"stack.blocks.{}.feed_forward.up", {block + ".mlp.dense_h_to_4h"}},
          {"stack.blocks.{}.feed_forward.down", {block + ".mlp.dense_4h_to_h"}}};
}

void add_decoder_heads(WeightTable& table, const TransformerConfig& config, const std::string& prefix,
                       const std::string& embedding, const std::string& lm_head) {
  table.prefix = prefix;
  table.unprefixed = {lm_head + ".", "score."};
  if (config.tie_word_embeddings) {
    table.tied = {{lm_head + ".weight", embedding + ".weight"}};
  } else {
    table.names.push_back({"lm_head.weight", {lm_head + ".weight"}});
  }
}

void add_decoder_with_bias(WeightTable& table, const TransformerConfig& config, const std::string& decoder,
                           const std::string& embedding) {
  if (config.tie_word_embeddings) {
    table.names.push_back({"prediction_bias", {decoder + ".bias"}});
    table.tied = {{decoder + ".weight", embedding + ".weight"}};
  } else {
    add_weights_and_biases(table, {{"decoder", {decoder}}});
  }
}

std::vector<bool> by_layer(std::int64_t count, const std::function<bool(std::int64_t layer)>& has) {
  std::vector<bool> layers;
  if (count > kMostLayers) return layers;  // validate() refuses the configuration
  for (std::int64_t i = 0; i < count; ++i) layers.push_back(has(i));
  return layers;
}

}  // namespace zoo
