#include "models/t5/config_reader.h"

#include <array>
#include <cmath>

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "models/formats/config_words.h"

namespace zoo::t5 {
namespace {

struct ActivationName {
  const char* theirs;
  Activation ours;
};
// The first name of each activation is the one that is written. "gated-gelu" is the tanh approximation, which
// transformers says in no other way.
constexpr std::array<ActivationName, 11> kActivations{{{"relu", Activation::kRelu},
                                                       {"gated-gelu", Activation::kGeGluTanh},
                                                       {"gated-silu", Activation::kSwiGlu},
                                                       {"gated-relu", Activation::kReGlu},
                                                       {"gelu", Activation::kGelu},
                                                       {"gelu_new", Activation::kGeluTanh},
                                                       {"silu", Activation::kSilu},
                                                       {"swish", Activation::kSilu},
                                                       {"gated-swish", Activation::kSwiGlu},
                                                       {"gated-gelu_new", Activation::kGeGluTanh},
                                                       {"gelu_pytorch_tanh", Activation::kGeluTanh}}};

Activation read_activation(const ConfigReader& reader) {
  const std::string name = reader.get_string("feed_forward_proj", "relu");
  for (const ActivationName& entry : kActivations) {
    if (name == entry.theirs) return entry.ours;
  }
  reader.refuse("feed_forward_proj",
                "expected relu, gated-gelu, gated-silu, gated-relu, gelu, gelu_new or silu");
}

std::string activation_name(Activation activation) {
  for (const ActivationName& entry : kActivations) {
    if (activation == entry.ours) return entry.theirs;
  }
  throw Error("T5's config.json cannot say an activation of ", name_of(activation));
}

bool names_encoder(const nlohmann::json& json) {
  const auto found = json.find("architectures");
  return found != json.end() && found->is_array() && !found->empty() && found->front() == "T5EncoderModel";
}

double output_scale(const TransformerConfig& config) {
  return 1.0 / std::sqrt(static_cast<double>(config.hidden_size));
}

// What its keys cannot say must not be written as something else.
void check_expressible(const TransformerConfig& config) {
  const auto need = [](bool good, const char* what) {
    if (!good) throw Error("T5's config.json cannot say ", what);
  };
  need(config.position == PositionKind::kT5Buckets, "positions other than T5's buckets");
  need(config.norm == NormKind::kRmsNorm && config.norm_placement == NormPlacement::kPre,
       "a norm other than an RMSNorm before each sublayer");
  need(config.attention_scale == 1.0, "scaled attention");
  need(!config.attention_bias && !config.feed_forward_bias, "biases");
  need(config.kv_heads() == config.num_heads, "shared key/value heads");
}

}  // namespace

TransformerConfig read_config(const nlohmann::json& json, const std::string& source) {
  const ConfigReader reader(json, source);
  TransformerConfig config;
  config.shape = names_encoder(json) ? Shape::kEncoder : Shape::kEncoderDecoder;
  config.position = PositionKind::kT5Buckets;
  config.norm = NormKind::kRmsNorm;
  config.attention_scale = 1.0;
  config.attention_bias = config.feed_forward_bias = config.norm_bias = false;
  config.vocab_size = reader.require_int("vocab_size");
  config.hidden_size = reader.require_int("d_model");
  config.head_dim = reader.get_int("d_kv", 64);
  config.intermediate_size = reader.require_int("d_ff");
  config.num_layers = reader.require_int("num_layers");
  if (config.shape == Shape::kEncoderDecoder)
    config.num_decoder_layers = reader.get_int("num_decoder_layers", 0);
  config.num_heads = reader.require_int("num_heads");
  config.relative_buckets = reader.get_int("relative_attention_num_buckets", 32);
  config.relative_max_distance = reader.get_int("relative_attention_max_distance", 128);
  config.max_positions = reader.get_int("n_positions", 512);
  config.activation = read_activation(reader);
  config.layer_norm_eps = reader.get_double("layer_norm_epsilon", 1e-6);
  config.initializer_range = reader.get_double("initializer_factor", 1.0);
  config.dropout = reader.get_double("dropout_rate", 0.1);
  config.embedding_dropout = config.attention_dropout = config.dropout;
  config.activation_dropout = config.final_dropout = config.dropout;
  read_pad_token(reader, 0, config);
  config.decoder_start_token_id = reader.get_int("decoder_start_token_id", -1);
  config.tie_word_embeddings = reader.get_bool("tie_word_embeddings", true);
  const bool scaled = reader.get_bool("scale_decoder_outputs", config.tie_word_embeddings);
  if (scaled && config.hidden_size > 0) config.logits_scale = output_scale(config);
  return config;
}

nlohmann::json write_config(const TransformerConfig& config) {
  check_expressible(config);
  const bool encoder = config.shape == Shape::kEncoder;
  nlohmann::json json{
      {"vocab_size", config.vocab_size},
      {"d_model", config.hidden_size},
      {"d_kv", config.head_size()},
      {"d_ff", config.feed_forward_size()},
      {"num_layers", config.num_layers},
      {"num_decoder_layers", config.decoder_layers()},
      {"num_heads", config.num_heads},
      {"relative_attention_num_buckets", config.relative_buckets},
      {"relative_attention_max_distance", config.relative_max_distance},
      {"n_positions", config.max_positions},
      {"feed_forward_proj", activation_name(config.activation)},
      {"layer_norm_epsilon", config.layer_norm_eps},
      {"initializer_factor", config.initializer_range},
      {"dropout_rate", config.dropout},
      {"is_encoder_decoder", !encoder},
      {"pad_token_id", nullptr},
      {"decoder_start_token_id", nullptr},
      {"tie_word_embeddings", config.tie_word_embeddings},
  };
  if (encoder) json["architectures"] = {"T5EncoderModel"};
  if (config.pad_token_id >= 0) json["pad_token_id"] = config.pad_token_id;
  if (config.decoder_start_token_id >= 0) json["decoder_start_token_id"] = config.decoder_start_token_id;
  const bool scaled = config.logits_scale != 1.0;
  if (scaled != config.tie_word_embeddings) {
    // Release 5's way, for which tie_word_embeddings is always true and the file decides.
    json["tie_word_embeddings"] = true;
    json["scale_decoder_outputs"] = scaled;
  }
  return json;
}

}  // namespace zoo::t5
