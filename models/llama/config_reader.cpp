#include "models/llama/config_reader.h"

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "models/formats/config_words.h"

namespace zoo::llama {
namespace {

Activation gated(Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return Activation::kSwiGlu;
    case Activation::kGelu:
      return Activation::kGeGlu;
    case Activation::kGeluTanh:
      return Activation::kGeGluTanh;
    default:
      return Activation::kReGlu;
  }
}

// Of the object that holds it, whose key in config.json is `key`.
RopeScaling read_scaling(const ConfigReader& reader, const TransformerConfig& config) {
  RopeScaling scaling;
  // transformers called it "type" before it called it "rope_type".
  const char* type_key = reader.has("rope_type") ? "rope_type" : "type";
  const std::string type = reader.get_string(type_key, "default");
  if (type == "default") return scaling;
  if (type != "linear" && type != "llama3") reader.refuse(type_key, "expected default, linear or llama3");
  if (!reader.has("factor")) throw Error(reader.source(), ": the key 'factor' is missing");
  scaling.kind = type == "linear" ? RopeScalingKind::kLinear : RopeScalingKind::kLlama3;
  scaling.factor = reader.get_double("factor", 1.0);
  if (type == "linear") return scaling;
  for (const char* key : {"low_freq_factor", "high_freq_factor"}) {
    if (!reader.has(key)) throw Error(reader.source(), ": the key '", key, "' is missing");
  }
  scaling.low_frequency_factor = reader.get_double("low_freq_factor", 1.0);
  scaling.high_frequency_factor = reader.get_double("high_freq_factor", 4.0);
  scaling.original_max_positions = reader.get_int("original_max_position_embeddings", config.max_positions);
  return scaling;
}

void read_rotary(const ConfigReader& reader, const nlohmann::json& json, TransformerConfig& config) {
  config.rope_theta = reader.get_double("rope_theta", 10000.0);
  // Where both stand, transformers 5 prefers the older one.
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!reader.has(key)) continue;
    const nlohmann::json& object = json.at(key);
    if (!object.is_object()) reader.refuse(key, "expected an object");
    if (object.empty()) continue;
    const ConfigReader inner(object, reader.source() + ": " + key);
    config.rope_theta = inner.get_double("rope_theta", config.rope_theta);
    if (inner.get_double("partial_rotary_factor", 1.0) != 1.0)
      inner.refuse("partial_rotary_factor", "expected 1");
    config.rope_scaling = read_scaling(inner, config);
    break;
  }
  if (reader.get_double("partial_rotary_factor", 1.0) != 1.0)
    reader.refuse("partial_rotary_factor", "expected 1");
}

// As transformers 4 writes it, which 5 reads too.
nlohmann::json scaling_json(const RopeScaling& scaling) {
  if (scaling.kind == RopeScalingKind::kNone) return nullptr;
  if (scaling.kind == RopeScalingKind::kLinear) return {{"rope_type", "linear"}, {"factor", scaling.factor}};
  return {{"rope_type", "llama3"},
          {"factor", scaling.factor},
          {"low_freq_factor", scaling.low_frequency_factor},
          {"high_freq_factor", scaling.high_frequency_factor},
          {"original_max_position_embeddings", scaling.original_max_positions}};
}

// What its keys cannot say must not be written as something else.
void check_expressible(const TransformerConfig& config) {
  const auto need = [](bool good, const char* what) {
    if (!good) throw Error("Llama's config.json cannot say ", what);
  };
  need(config.position == PositionKind::kRotary, "positions that are not rotary");
  need(config.norm == NormKind::kRmsNorm && config.norm_placement == NormPlacement::kPre,
       "a norm other than an RMSNorm before each sublayer");
  need(is_gated(config.activation), "a feed-forward without a gate");
}

}  // namespace

TransformerConfig read_config(const nlohmann::json& json, const std::string& source) {
  const ConfigReader reader(json, source);
  TransformerConfig config;
  config.position = PositionKind::kRotary;
  config.norm = NormKind::kRmsNorm;
  config.norm_bias = false;
  config.initial_weights = InitialWeights::kNormal;
  config.trains_padding = false;
  config.vocab_size = reader.require_int("vocab_size");
  config.hidden_size = reader.require_int("hidden_size");
  config.num_layers = reader.require_int("num_hidden_layers");
  config.num_heads = reader.require_int("num_attention_heads");
  config.num_kv_heads = reader.get_int("num_key_value_heads", 0);
  config.head_dim = reader.get_int("head_dim", 0);
  config.intermediate_size = reader.require_int("intermediate_size");
  config.max_positions = reader.get_int("max_position_embeddings", 2048);
  config.activation = gated(read_activation(reader, "hidden_act", "silu"));
  config.layer_norm_eps = reader.get_double("rms_norm_eps", 1e-6);
  config.initializer_range = reader.get_double("initializer_range", 0.02);
  config.attention_dropout = reader.get_double("attention_dropout", 0.0);
  config.attention_bias = reader.get_bool("attention_bias", false);
  config.feed_forward_bias = reader.get_bool("mlp_bias", false);
  config.tie_word_embeddings = reader.get_bool("tie_word_embeddings", false);
  read_pad_token(reader, -1, config);
  read_labels(reader, config);
  read_rotary(reader, json, config);
  if (reader.has("sliding_window")) reader.refuse("sliding_window", "expected none: attention is full");
  return config;
}

nlohmann::json write_config(const TransformerConfig& config) {
  check_expressible(config);
  nlohmann::json json{
      {"vocab_size", config.vocab_size},
      {"hidden_size", config.hidden_size},
      {"num_hidden_layers", config.num_layers},
      {"num_attention_heads", config.num_heads},
      {"num_key_value_heads", config.kv_heads()},
      {"head_dim", config.head_size()},
      {"intermediate_size", config.feed_forward_size()},
      {"max_position_embeddings", config.max_positions},
      {"hidden_act", activation_word(gate_of(config.activation))},
      {"rms_norm_eps", config.layer_norm_eps},
      {"initializer_range", config.initializer_range},
      {"attention_dropout", config.attention_dropout},
      {"attention_bias", config.attention_bias},
      {"mlp_bias", config.feed_forward_bias},
      {"tie_word_embeddings", config.tie_word_embeddings},
      {"rope_theta", config.rope_theta},
      {"rope_scaling", scaling_json(config.rope_scaling)},
  };
  write_pad_token_and_labels(config, json);
  return json;
}

}  // namespace zoo::llama
