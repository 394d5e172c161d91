#include "models/families/shared.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "data/base/error.h"

namespace zoo {
namespace {

using C = TransformerConfig;

// Of keys that are absent, transformers computes the values.
RopeScaling read_yarn(const ConfigReader& reader, std::int64_t max_positions) {
  RopeScaling scaling{.kind = RopeScalingKind::kYarn};
  if (!reader.has("original_max_position_embeddings"))
    throw Error(reader.source(), ": the key 'original_max_position_embeddings' is missing");
  scaling.original_max_positions = reader.require_int("original_max_position_embeddings");
  scaling.factor = reader.get_double(
      "factor", static_cast<double>(max_positions) / static_cast<double>(scaling.original_max_positions));
  const auto magnitude = [&](double weight) {
    return scaling.factor <= 1 ? 1.0 : 0.1 * weight * std::log(scaling.factor) + 1.0;
  };
  const double mscale = reader.get_double("mscale", 0), of_all = reader.get_double("mscale_all_dim", 0);
  const bool both = mscale != 0 && of_all != 0;
  scaling.attention_factor =
      reader.get_double("attention_factor", both ? magnitude(mscale) / magnitude(of_all) : magnitude(1.0));
  scaling.beta_fast = reader.get_double("beta_fast", scaling.beta_fast);
  scaling.beta_slow = reader.get_double("beta_slow", scaling.beta_slow);
  scaling.truncate = reader.get_bool("truncate", true);
  return scaling;
}

// `reader` is of the object that holds the scaling.
RopeScaling read_scaling(const ConfigReader& reader, std::int64_t max_positions) {
  RopeScaling scaling;
  // Older files say "type" for "rope_type".
  const char* type_key = reader.has("rope_type") ? "rope_type" : "type";
  const std::string type = reader.get_string(type_key, "default");
  if (type == "default") return scaling;
  if (type == "yarn") return read_yarn(reader, max_positions);
  if (type != "linear" && type != "llama3")
    reader.refuse(type_key, "expected default, linear, llama3 or yarn");
  if (!reader.has("factor")) throw Error(reader.source(), ": the key 'factor' is missing");
  scaling.kind = type == "linear" ? RopeScalingKind::kLinear : RopeScalingKind::kLlama3;
  scaling.factor = reader.get_double("factor", 1.0);
  if (type == "linear") return scaling;
  for (const char* key : {"low_freq_factor", "high_freq_factor"}) {
    if (!reader.has(key)) throw Error(reader.source(), ": the key '", key, "' is missing");
  }
  scaling.low_frequency_factor = reader.get_double("low_freq_factor", 1.0);
  scaling.high_frequency_factor = reader.get_double("high_freq_factor", 4.0);
  scaling.original_max_positions = reader.get_int("original_max_position_embeddings", max_positions);
  return scaling;
}

void read_rope(const ConfigReader& reader, TransformerConfig& config) {
  config.rope_theta = reader.get_double("rope_theta", config.rope_theta);
  // Where both stand, transformers 5 prefers the older one.
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!reader.has(key)) continue;
    const nlohmann::json& object = reader.at(key);
    if (!object.is_object()) reader.refuse(key, "expected an object");
    if (object.empty()) continue;
    const ConfigReader inner(object, reader.source() + ": " + key);
    config.rope_theta = inner.get_double("rope_theta", config.rope_theta);
    config.rope_scaling = read_scaling(inner, config.max_positions);
    return;
  }
}

// As transformers 4 writes it, which 5 reads too.
void write_rope(const TransformerConfig& config, nlohmann::json& json) {
  const RopeScaling& scaling = config.rope_scaling;
  json["rope_theta"] = config.rope_theta;
  json["rope_scaling"] = nullptr;
  if (scaling.kind == RopeScalingKind::kNone) return;
  if (scaling.kind == RopeScalingKind::kYarn) {
    json["rope_scaling"] = {{"rope_type", "yarn"},
                            {"factor", scaling.factor},
                            {"attention_factor", scaling.attention_factor},
                            {"beta_fast", scaling.beta_fast},
                            {"beta_slow", scaling.beta_slow},
                            {"truncate", scaling.truncate},
                            {"original_max_position_embeddings", scaling.original_max_positions}};
    return;
  }
  const bool linear = scaling.kind == RopeScalingKind::kLinear;
  json["rope_scaling"] = {{"rope_type", linear ? "linear" : "llama3"}, {"factor", scaling.factor}};
  if (linear) return;
  json["rope_scaling"].update({{"low_freq_factor", scaling.low_frequency_factor},
                               {"high_freq_factor", scaling.high_frequency_factor},
                               {"original_max_position_embeddings", scaling.original_max_positions}});
}

}  // namespace

std::vector<ConfigKey> concatenated(std::initializer_list<std::vector<ConfigKey>> parts) {
  std::vector<ConfigKey> keys;
  for (const auto& part : parts) keys.insert(keys.end(), part.begin(), part.end());
  return keys;
}

ConfigKey rope_key() {
  return {"rope_theta", read_rope, write_rope, {&C::rope_theta}};
}

ConfigKey partial_rotary_key(const std::string& name, double absent) {
  const auto read = [name, absent](const ConfigReader& reader, C& config) {
    double share = reader.get_double(name.c_str(), absent);
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
      if (!reader.has(key)) continue;
      const ConfigReader inner(reader.at(key), reader.source() + ": " + key);
      share = inner.get_double("partial_rotary_factor", share);
      break;
    }
    if (!(share > 0 && share <= 1)) reader.refuse(name.c_str(), "expected a number in (0, 1]");
    config.rotary_dim = static_cast<std::int64_t>(static_cast<double>(config.head_size()) * share);
  };
  const auto write = [name](const C& config, nlohmann::json& json) {
    const double share = static_cast<double>(config.rotary_size()) / static_cast<double>(config.head_size());
    json[name] = share;
    if (!json["rope_scaling"].is_null()) json["rope_scaling"]["partial_rotary_factor"] = share;
  };
  return {name, read, write};
}

std::vector<ConfigKey> rope_keys() {
  ConfigKey whole = partial_rotary_key("partial_rotary_factor", 1.0);
  whole.read = [read = whole.read](const ConfigReader& reader, C& config) {
    read(reader, config);
    if (config.rotary_dim != config.head_size()) reader.refuse("partial_rotary_factor", "expected 1");
  };
  whole.write = {};
  return {rope_key(), whole};
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

namespace {

// Our names of a block's norms and Llama's, Gemma 2's or OLMo 2's.
std::vector<std::pair<std::string, std::string>> norm_names(NormPlacement placement) {
  switch (placement) {
    case NormPlacement::kSandwich:
      return {{"attention_norm", "input_layernorm"},
              {"attention_end_norm", "post_attention_layernorm"},
              {"feed_forward_norm", "pre_feedforward_layernorm"},
              {"feed_forward_end_norm", "post_feedforward_layernorm"}};
    case NormPlacement::kBranchEnd:
      return {{"attention_norm", "post_attention_layernorm"},
              {"feed_forward_norm", "post_feedforward_layernorm"}};
    default:
      return {{"attention_norm", "input_layernorm"}, {"feed_forward_norm", "post_attention_layernorm"}};
  }
}

}  // namespace

TransformerConfig llama_base() {
  TransformerConfig config;
  config.position = PositionKind::kRotary;
  config.norm = NormKind::kRmsNorm;
  config.layer_norm_eps = 1e-6;
  config.activation = Activation::kSwiGlu;
  config.qkv_bias = config.attention_output_bias = config.feed_forward_bias = config.norm_bias = false;
  config.tie_word_embeddings = false;
  config.trains_padding = false;
  config.max_positions = 2048;
  config.initial_weights = InitialWeights::kNormal;
  return config;
}

ConfigKey attention_bias_key() {
  return optional_key("attention_bias", {&C::qkv_bias, &C::attention_output_bias});
}

std::vector<ConfigKey> llama_keys(const std::string& activation) {
  return {
      required_key("vocab_size", &C::vocab_size),
      required_key("hidden_size", &C::hidden_size),
      required_key("num_hidden_layers", &C::num_layers),
      required_key("num_attention_heads", &C::num_heads),
      optional_key("num_key_value_heads", &C::num_kv_heads),
      optional_key("head_dim", &C::head_dim),
      required_key("intermediate_size", &C::intermediate_size),
      optional_key("max_position_embeddings", &C::max_positions),
      activation_key(activation, ActivationUse::kGate),
      optional_key("rms_norm_eps", &C::layer_norm_eps),
      optional_key("initializer_range", &C::initializer_range),
      optional_key("attention_dropout", &C::attention_dropout),
      optional_key("tie_word_embeddings", &C::tie_word_embeddings),
      pad_token_key(),
      label_keys(),
  };
}

TransformerConfig gemma_base() {
  TransformerConfig config = llama_base();
  config.norm = NormKind::kRmsNormPlusOne;
  config.activation = Activation::kGeGluTanh;
  config.embedding_scale = 0;
  config.head_dim = 256;
  config.max_positions = 8192;
  config.tie_word_embeddings = true;
  config.pad_token_id = 0;
  return config;
}

std::vector<ConfigKey> qwen_window_keys() {
  const auto read = [](const ConfigReader& reader, C& config) {
    config.sliding_window =
        reader.get_bool("use_sliding_window", false) ? reader.get_int("sliding_window", 4096) : 0;
    // The default of layer_types, which stands after it.
    const std::int64_t first = reader.get_int("max_window_layers", 28);
    config.window_layers.clear();
    for (std::int64_t i = 0; i < config.num_layers; ++i) config.window_layers.push_back(i >= first);
  };
  const auto write = [](const C& config, nlohmann::json& json) {
    json["use_sliding_window"] = config.sliding_window > 0;
    json["sliding_window"] = nullptr;
    if (config.sliding_window > 0) json["sliding_window"] = config.sliding_window;
  };
  return {{"use_sliding_window", read, write}, layer_types_key()};
}

std::vector<ConfigKey> gemma2_keys() {
  const auto read_scale = [](const ConfigReader& reader, C& config) {
    const double scalar = reader.get_double("query_pre_attn_scalar", 256.0);
    if (scalar <= 0) reader.refuse("query_pre_attn_scalar", "expected a positive number");
    config.attention_scale = 1.0 / std::sqrt(scalar);
  };
  const auto write_scale = [](const C& config, nlohmann::json& json) {
    json["query_pre_attn_scalar"] = std::llround(1.0 / (config.attention_scale * config.attention_scale));
  };
  return concatenated({llama_keys("hidden_activation"),
                       {
                           attention_bias_key(),
                           {"query_pre_attn_scalar", read_scale, write_scale},
                           nullable_key("attn_logit_softcapping", &C::attention_softcap),
                           nullable_key("final_logit_softcapping", &C::logits_softcap),
                           nullable_key("sliding_window", &C::sliding_window),
                           expected_key("use_bidirectional_attention", false),
                       }});
}

std::vector<std::int64_t> query_key_value_rows(const TransformerConfig& config) {
  const std::int64_t width = config.num_heads * config.head_size();
  const std::int64_t kv_width = config.kv_heads() * config.head_size();
  return {width, kv_width, kv_width};
}

WeightTable llama_weights(const TransformerConfig& config) {
  constexpr auto kSame = WeightLayout::kSame;
  const std::vector<std::int64_t> rows = query_key_value_rows(config);
  WeightTable table;
  // clang-format off
  table.names = {
      {"embeddings.token.weight",                  {"embed_tokens.weight"}},
      {"stack.blocks.{}.attention.qkv.weight",     {"layers.{}.self_attn.q_proj.weight",
                                                    "layers.{}.self_attn.k_proj.weight",
                                                    "layers.{}.self_attn.v_proj.weight"}, kSame, rows},
      {"stack.blocks.{}.attention.out.weight",     {"layers.{}.self_attn.o_proj.weight"}},
      {"stack.blocks.{}.feed_forward.up.weight",   {"layers.{}.mlp.gate_proj.weight",
                                                    "layers.{}.mlp.up_proj.weight"}},
      {"stack.blocks.{}.feed_forward.down.weight", {"layers.{}.mlp.down_proj.weight"}},
      {"stack.final_norm.weight",                  {"norm.weight"}},
      {"score.weight",                             {"score.weight"}},
  };
  for (const auto& [ours, theirs] : norm_names(config.norm_placement)) table.names.push_back(
      {"stack.blocks.{}." + ours + ".weight",      {"layers.{}." + theirs + ".weight"}});
  if (config.query_key_norm != QueryKeyNorm::kNone) table.names.insert(table.names.end(), {
      {"stack.blocks.{}.attention.query_norm.weight", {"layers.{}.self_attn.q_norm.weight"}},
      {"stack.blocks.{}.attention.key_norm.weight",   {"layers.{}.self_attn.k_norm.weight"}},
  });
  if (config.qkv_bias) table.names.push_back(
      {"stack.blocks.{}.attention.qkv.bias",       {"layers.{}.self_attn.q_proj.bias",
                                                    "layers.{}.self_attn.k_proj.bias",
                                                    "layers.{}.self_attn.v_proj.bias"}, kSame, rows});
  if (config.attention_output_bias) table.names.push_back(
      {"stack.blocks.{}.attention.out.bias",       {"layers.{}.self_attn.o_proj.bias"}});
  if (config.feed_forward_bias) table.names.insert(table.names.end(), {
      {"stack.blocks.{}.feed_forward.up.bias",     {"layers.{}.mlp.gate_proj.bias",
                                                    "layers.{}.mlp.up_proj.bias"}},
      {"stack.blocks.{}.feed_forward.down.bias",   {"layers.{}.mlp.down_proj.bias"}},
  });
  // clang-format on
  table.prefix = "model.";
  table.unprefixed = table.of_heads = {"lm_head.", "score."};
  if (config.tie_word_embeddings) {
    table.tied = {{"lm_head.weight", "embed_tokens.weight"}};
  } else {
    table.names.push_back({"lm_head.weight", {"lm_head.weight"}});
  }
  // Frequencies of the rotary positions, a buffer before transformers 4.32.
  table.ignored = {"layers.{}.self_attn.rotary_emb.inv_freq"};
  return table;
}

TransformerConfig bert_base() {
  TransformerConfig config;
  config.shape = Shape::kEncoder;
  config.norm_placement = NormPlacement::kPost;
  config.layer_norm_eps = 1e-12;
  config.embedding_norm = true;
  config.type_vocab_size = 2;
  config.pad_token_id = 0;
  config.trains_padding = false;
  config.activation = Activation::kGelu;
  config.embedding_dropout = config.attention_dropout = config.dropout = 0.1;
  config.classifier_dropout = config.token_dropout = 0.1;
  config.initial_weights = InitialWeights::kNormal;
  return config;
}

std::vector<ConfigKey> bert_keys() {
  return {
      required_key("vocab_size", &C::vocab_size),
      required_key("hidden_size", &C::hidden_size),
      required_key("num_hidden_layers", &C::num_layers),
      required_key("num_attention_heads", &C::num_heads),
      required_key("intermediate_size", &C::intermediate_size),
      required_key("max_position_embeddings", &C::max_positions),
      optional_key("type_vocab_size", &C::type_vocab_size),
      activation_key("hidden_act"),
      optional_key("layer_norm_eps", &C::layer_norm_eps),
      optional_key("initializer_range", &C::initializer_range),
      optional_key("hidden_dropout_prob", {&C::dropout, &C::embedding_dropout}),
      optional_key("attention_probs_dropout_prob", &C::attention_dropout),
      optional_key("tie_word_embeddings", &C::tie_word_embeddings),
      pad_token_key(),
      label_keys(),
      expected_key("position_embedding_type", "absolute"),
      expected_key("is_decoder", false),
      expected_key("add_cross_attention", false),
  };
}

ConfigKey classifier_dropout_key() {
  const auto read = [](const ConfigReader& reader, TransformerConfig& config) {
    config.classifier_dropout = config.token_dropout =
        reader.get_double("classifier_dropout", config.dropout);
  };
  const auto write = [](const TransformerConfig& config, nlohmann::json& json) {
    json["classifier_dropout"] = nullptr;
    if (config.classifier_dropout != config.dropout) json["classifier_dropout"] = config.classifier_dropout;
  };
  return {"classifier_dropout", read, write, {&C::classifier_dropout, &C::token_dropout}};
}

std::vector<WeightName> bert_weights() {
  WeightTable table;
  // clang-format off
  table.names = {
      {"embeddings.token.weight",      {"embeddings.word_embeddings.weight"}},
      {"embeddings.position.weight",   {"embeddings.position_embeddings.weight"}},
      {"embeddings.token_type.weight", {"embeddings.token_type_embeddings.weight"}},
  };
  add_weights_and_biases(table, {
      {"embeddings.norm",                    {"embeddings.LayerNorm"}},
      {"stack.blocks.{}.attention.qkv",      {"encoder.layer.{}.attention.self.query",
                                              "encoder.layer.{}.attention.self.key",
                                              "encoder.layer.{}.attention.self.value"}},
      {"stack.blocks.{}.attention.out",      {"encoder.layer.{}.attention.output.dense"}},
      {"stack.blocks.{}.attention_norm",     {"encoder.layer.{}.attention.output.LayerNorm"}},
      {"stack.blocks.{}.feed_forward.up",    {"encoder.layer.{}.intermediate.dense"}},
      {"stack.blocks.{}.feed_forward.down",  {"encoder.layer.{}.output.dense"}},
      {"stack.blocks.{}.feed_forward_norm",  {"encoder.layer.{}.output.LayerNorm"}},
      {"pooler.dense",                       {"pooler.dense"}},
      {"token_classifier",                   {"classifier"}},
      {"span",                               {"qa_outputs"}},
  });
  // clang-format on
  return table.names;
}

void add_masked_lm_projection(WeightTable& table, const TransformerConfig& config, const std::string& decoder,
                              const std::string& bias) {
  table.names.push_back({"prediction_bias", {bias}});
  if (config.tie_word_embeddings) {
    table.tied = {{decoder + ".weight", "embeddings.word_embeddings.weight"}, {decoder + ".bias", bias}};
    table.renamed = {{bias, decoder + ".bias"}};
  } else {
    add_weights_and_biases(table, {{"decoder", {decoder}}});
    // transformers 4 kept one bias for both.
    table.renamed = {{decoder + ".bias", bias}};
  }
}

}  // namespace zoo
