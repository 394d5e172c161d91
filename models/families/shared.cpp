#include "models/families/shared.h"

#include <nlohmann/json.hpp>

#include "data/base/error.h"

namespace zoo {
namespace {

using C = TransformerConfig;

// `reader` is of the object that holds the scaling.
RopeScaling read_scaling(const ConfigReader& reader, std::int64_t max_positions) {
  RopeScaling scaling;
  // Older files say "type" for "rope_type".
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
    if (!inner.is("partial_rotary_factor", 1.0)) inner.refuse("partial_rotary_factor", "expected 1");
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
  const bool linear = scaling.kind == RopeScalingKind::kLinear;
  json["rope_scaling"] = {{"rope_type", linear ? "linear" : "llama3"}, {"factor", scaling.factor}};
  if (linear) return;
  json["rope_scaling"].update({{"low_freq_factor", scaling.low_frequency_factor},
                               {"high_freq_factor", scaling.high_frequency_factor},
                               {"original_max_position_embeddings", scaling.original_max_positions}});
}

}  // namespace

std::vector<ConfigKey> rope_keys() {
  return {{"rope_theta", read_rope, write_rope, {&C::rope_theta}},
          expected_key("partial_rotary_factor", 1.0)};
}

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

std::vector<ConfigKey> llama_keys() {
  return concatenated(
      {
          required_key("vocab_size", &C::vocab_size),
          required_key("hidden_size", &C::hidden_size),
          required_key("num_hidden_layers", &C::num_layers),
          required_key("num_attention_heads", &C::num_heads),
          optional_key("num_key_value_heads", &C::num_kv_heads),
          optional_key("head_dim", &C::head_dim),
          required_key("intermediate_size", &C::intermediate_size),
          optional_key("max_position_embeddings", &C::max_positions),
          activation_key("hidden_act", ActivationUse::kGate),
          optional_key("rms_norm_eps", &C::layer_norm_eps),
          optional_key("initializer_range", &C::initializer_range),
          optional_key("attention_dropout", &C::attention_dropout),
          optional_key("tie_word_embeddings", &C::tie_word_embeddings),
          pad_token_key(),
          label_keys(),
      },
      rope_keys());
}

WeightTable llama_weights(const TransformerConfig& config) {
  constexpr auto kSame = WeightLayout::kSame;
  const std::int64_t width = config.num_heads * config.head_size();
  const std::int64_t kv_width = config.kv_heads() * config.head_size();
  const std::vector<std::int64_t> rows{width, kv_width, kv_width};
  WeightTable table;
  // clang-format off
  table.names = {
      {"embeddings.token.weight",                  {"embed_tokens.weight"}},
      {"stack.blocks.{}.attention_norm.weight",    {"layers.{}.input_layernorm.weight"}},
      {"stack.blocks.{}.attention.qkv.weight",     {"layers.{}.self_attn.q_proj.weight",
                                                    "layers.{}.self_attn.k_proj.weight",
                                                    "layers.{}.self_attn.v_proj.weight"}, kSame, rows},
      {"stack.blocks.{}.attention.out.weight",     {"layers.{}.self_attn.o_proj.weight"}},
      {"stack.blocks.{}.feed_forward_norm.weight", {"layers.{}.post_attention_layernorm.weight"}},
      {"stack.blocks.{}.feed_forward.up.weight",   {"layers.{}.mlp.gate_proj.weight",
                                                    "layers.{}.mlp.up_proj.weight"}},
      {"stack.blocks.{}.feed_forward.down.weight", {"layers.{}.mlp.down_proj.weight"}},
      {"stack.final_norm.weight",                  {"norm.weight"}},
      {"score.weight",                             {"score.weight"}},
  };
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
