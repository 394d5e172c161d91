#include "models/gpt/config_reader.h"

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "models/formats/config_words.h"

namespace zoo::gpt {
namespace {

// What its keys cannot say must not be written as something else.
void check_expressible(const TransformerConfig& config) {
  const auto need = [](bool good, const char* what) {
    if (!good) throw Error("GPT-2's config.json cannot say ", what);
  };
  need(config.position == PositionKind::kLearned, "positions that are not learned");
  need(config.norm == NormKind::kLayerNorm && config.norm_placement == NormPlacement::kPre,
       "a norm other than a LayerNorm before each sublayer");
  need(config.kv_heads() == config.num_heads && config.head_size() * config.num_heads == config.hidden_size,
       "heads of other sizes than hidden_size / num_heads, or shared ones");
  need(config.attention_bias == config.feed_forward_bias && config.attention_bias == config.norm_bias,
       "a bias in some layers only");
}

}  // namespace

TransformerConfig read_config(const nlohmann::json& json, const std::string& source) {
  const ConfigReader reader(json, source);
  TransformerConfig config;
  config.vocab_size = reader.require_int("vocab_size");
  config.hidden_size = reader.require_int("n_embd");
  config.num_layers = reader.require_int("n_layer");
  config.num_heads = reader.require_int("n_head");
  config.max_positions =
      reader.has("n_positions") ? reader.require_int("n_positions") : reader.require_int("n_ctx");
  config.intermediate_size = reader.get_int("n_inner", 0);
  config.activation = read_activation(reader, "activation_function", "gelu_new");
  config.layer_norm_eps = reader.get_double("layer_norm_epsilon", 1e-5);
  config.initializer_range = reader.get_double("initializer_range", 0.02);
  config.embedding_dropout = reader.get_double("embd_pdrop", 0.1);
  config.attention_dropout = reader.get_double("attn_pdrop", 0.1);
  config.dropout = reader.get_double("resid_pdrop", 0.1);
  config.tie_word_embeddings = reader.get_bool("tie_word_embeddings", true);
  config.attention_bias = config.feed_forward_bias = config.norm_bias = reader.get_bool("bias", true);
  read_pad_token(reader, -1, config);
  read_labels(reader, config);
  if (!reader.get_bool("scale_attn_weights", true)) reader.refuse("scale_attn_weights", "expected true");
  if (reader.get_bool("scale_attn_by_inverse_layer_idx", false)) {
    reader.refuse("scale_attn_by_inverse_layer_idx", "expected false");
  }
  if (reader.get_bool("add_cross_attention", false)) reader.refuse("add_cross_attention", "expected false");
  return config;
}

nlohmann::json write_config(const TransformerConfig& config) {
  check_expressible(config);
  nlohmann::json json{
      {"vocab_size", config.vocab_size},
      {"n_embd", config.hidden_size},
      {"n_layer", config.num_layers},
      {"n_head", config.num_heads},
      {"n_positions", config.max_positions},
      {"n_inner", nullptr},
      {"activation_function", activation_word(config.activation)},
      {"layer_norm_epsilon", config.layer_norm_eps},
      {"initializer_range", config.initializer_range},
      {"embd_pdrop", config.embedding_dropout},
      {"attn_pdrop", config.attention_dropout},
      {"resid_pdrop", config.dropout},
      {"tie_word_embeddings", config.tie_word_embeddings},
  };
  if (config.intermediate_size > 0) json["n_inner"] = config.intermediate_size;
  if (!config.attention_bias) json["bias"] = false;
  write_pad_token_and_labels(config, json);
  return json;
}

}  // namespace zoo::gpt
