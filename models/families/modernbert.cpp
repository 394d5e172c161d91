// ModernBERT (Warner et al., 2024): a pre-LN encoder without biases, with rotary positions and a gated
// feed-forward. Of three layers two see a window, whose rotary positions have a base of their own. The first
// layer's attention reads the normed embeddings as they are.

#include <nlohmann/json.hpp>

#include "models/encoder/encoder.h"
#include "models/families/kinds/rotary_keys.h"
#include "models/families/kinds/shared.h"

namespace zoo::family::modernbert {

C base() {
  C config;
  config.shape = Shape::kEncoder;
  config.position = PositionKind::kRotary;
  config.rope_theta = 160000.0;
  config.window_rope_theta = 10000.0;
  config.sliding_window = 128;
  config.activation = Activation::kGeGlu;
  config.first_attention_norm = false;
  config.embedding_norm = true;
  config.qkv_bias = config.attention_output_bias = config.feed_forward_bias = config.norm_bias = false;
  config.trains_padding = false;
  config.pad_token_id = 50283;
  config.max_positions = 8192;
  return config;
}

// Absent, every n-th layer sees all tokens, n being global_attn_every_n_layers.
ConfigKey layers_key() {
  return then_read(layer_types_key(), [](const ConfigReader& reader, C& config) {
    if (reader.has("layer_types")) return;
    const char* period = "global_attn_every_n_layers";
    const std::int64_t n = reader.get_int(period, 3);
    if (n < 1) reader.refuse(period, "expected a positive number");
    config.window_layers = by_layer(config.num_layers, [n](std::int64_t layer) { return layer % n != 0; });
  });
}

ConfigKey ropes_key() {
  const auto read = [](const ConfigReader& reader, C& config) {
    config.rope_theta = reader.get_double("global_rope_theta", config.rope_theta);
    config.window_rope_theta = reader.get_double("local_rope_theta", config.window_rope_theta);
    if (reader.has("rope_scaling")) reader.refuse("rope_scaling", "expected null");
    if (reader.has("rope_parameters") && !read_ropes_by_layer(reader, config))
      reader.refuse("rope_parameters", "expected the objects full_attention and sliding_attention");
  };
  const auto write = [](const C& config, nlohmann::json& json) {
    json["global_rope_theta"] = config.rope_theta;
    json["local_rope_theta"] = config.window_rope_theta > 0 ? config.window_rope_theta : config.rope_theta;
  };
  return {"rope_parameters", read, write};
}

ConfigKey pooling_key() {
  const auto read = [](const ConfigReader& reader, C& config) {
    const std::string pooling = reader.get_string("classifier_pooling", "cls");
    if (pooling != "cls" && pooling != "mean") reader.refuse("classifier_pooling", "expected cls or mean");
    config.sentence_pooling = pooling == "cls" ? SentencePooling::kFirst : SentencePooling::kMean;
  };
  const auto write = [](const C& config, nlohmann::json& json) {
    json["classifier_pooling"] = config.sentence_pooling == SentencePooling::kFirst ? "cls" : "mean";
  };
  return {"classifier_pooling", read, write};
}

WeightTable weights(const C& config) {
  WeightTable table{.names = {{"embeddings.token.weight", {"embeddings.tok_embeddings.weight"}}}};
  // clang-format off
  add_weights_and_biases(table, {
      {"embeddings.norm",                    {"embeddings.norm"}},
      {"stack.blocks.{}.attention_norm",     {"layers.{}.attn_norm"}},
      {"stack.blocks.{}.attention.qkv",      {"layers.{}.attn.Wqkv"}},
      {"stack.blocks.{}.attention.out",      {"layers.{}.attn.Wo"}},
      {"stack.blocks.{}.feed_forward_norm",  {"layers.{}.mlp_norm"}},
      {"stack.blocks.{}.feed_forward.up",    {"layers.{}.mlp.Wi"}},
      {"stack.blocks.{}.feed_forward.down",  {"layers.{}.mlp.Wo"}},
      {"stack.final_norm",                   {"final_norm"}},
      {"prediction_dense",                   {"head.dense"}},
      {"prediction_norm",                    {"head.norm"}},
      {"sentence_classifier",                {"classifier"}},
      {"token_classifier",                   {"classifier"}},
      {"span",                               {"classifier"}},
  });
  // clang-format on
  add_decoder_with_bias(table, config, "decoder", "embeddings.tok_embeddings");
  table.prefix = "model.";
  table.unprefixed = {"head.", "decoder.", "classifier."};
  return table;
}

C sized(std::int64_t layers, std::int64_t heads, std::int64_t hidden, std::int64_t inner) {
  C config = of_size(base(), {50368, hidden, layers, heads, inner});
  config.window_layers = by_layer(layers, [](std::int64_t layer) { return layer % 3 != 0; });
  return config;
}

Family family() {
  return {
      .model_type = "modernbert",
      .description =
          "ModernBERT (Warner et al., 2024): encoder, pre-LN, rotary positions, windows, GeGLU, no biases",
      .heads = encoder_heads("ModernBert"),
      .base = base(),
      .keys = {"ModernBERT",
               concatenated({usual_size_keys(),
                             {
                                 optional_key("max_position_embeddings", &C::max_positions),
                                 activation_key("hidden_activation", ActivationUse::kGate),
                                 optional_key("norm_eps", &C::layer_norm_eps),
                                 optional_key("norm_bias", &C::norm_bias),
                                 optional_key("attention_bias", {&C::qkv_bias, &C::attention_output_bias}),
                                 optional_key("mlp_bias", &C::feed_forward_bias),
                                 positive_key("local_attention", &C::sliding_window),
                                 layers_key(),
                                 ropes_key(),
                                 optional_key("embedding_dropout", &C::embedding_dropout),
                                 optional_key("mlp_dropout", &C::activation_dropout),
                                 // It acts on the attention weights and on the attention's output, but not on
                                 // the feed-forward's.
                                 expected_key("attention_dropout", 0.0),
                                 optional_key("classifier_dropout", {&C::classifier_dropout,
                                                                     &C::token_dropout, &C::answer_dropout}),
                                 pooling_key(),
                                 expected_key("classifier_bias", false),
                                 expected_key("classifier_activation", "gelu"),
                                 expected_key("decoder_bias", true),
                                 ignored_keys({"deterministic_flash_attn", "initializer_cutoff_factor",
                                               "layer_norm_eps", "position_embedding_type",
                                               "reference_compile", "repad_logits_with_grad",
                                               "sparse_pred_ignore_index", "sparse_prediction"}),
                             },
                             usual_end_keys()})},
      .presets = {{"ModernBERT-base", "ModernBERT base", sized(22, 12, 768, 1152)},
                  {"ModernBERT-large", "ModernBERT large", sized(28, 16, 1024, 2624)}},
      .build = encoder::builder({.has_pooler = false,
                                 .prediction_activation = Activation::kGelu,
                                 .keeps_spare_bias = false,
                                 .transforms_all = true,
                                 .transform_bias = false}),
      .weight_table = weights,
  };
}

}  // namespace zoo::family::modernbert
