// Falcon (Almazrouei et al., 2023): rotary positions, one key/value head or few, attention and feed-forward
// network side by side after one norm (7B) or two (40B).

#include <nlohmann/json.hpp>

#include "models/families/kinds/rotary_keys.h"
#include "models/families/kinds/shared.h"

namespace zoo::family::falcon {

C base() {
  C config;
  config.position = PositionKind::kRotary;
  config.sublayer_order = SublayerOrder::kParallelOneNorm;
  config.activation = Activation::kGelu;
  config.qkv_bias = config.attention_output_bias = config.feed_forward_bias = false;
  config.num_kv_heads = 1;
  config.max_positions = 2048;
  config.initial_weights = InitialWeights::kNormal;
  return config;
}

// new_decoder_architecture: num_kv_heads groups, two norms unless num_ln_in_parallel_attn is 1. Otherwise one
// key/value head (multi_query) or as many as query heads, and one norm or sublayers one by one
// (parallel_attn).
void read_architecture(const ConfigReader& reader, C& config) {
  // To transformers a null is false, though an absent key is true.
  const auto is_set = [&](const char* key) { return !reader.is_null(key) && reader.get_bool(key, true); };
  const bool grouped = reader.get_bool("new_decoder_architecture", false), parallel = is_set("parallel_attn");
  if (grouped && !parallel) reader.refuse("parallel_attn", "expected true with new_decoder_architecture");
  const std::int64_t norms = reader.get_int("num_ln_in_parallel_attn", grouped ? 2 : 1);
  if (norms != 1 && (norms != 2 || !grouped)) reader.refuse("num_ln_in_parallel_attn", "expected 1");
  if (!parallel && config.attention_dropout != 0)  // the rate of the attention's output too
    reader.refuse("attention_dropout", "expected 0 without parallel_attn");
  config.num_kv_heads = grouped                 ? reader.get_int("num_kv_heads", config.num_heads)
                        : is_set("multi_query") ? 1
                                                : config.num_heads;
  config.sublayer_order = !parallel    ? SublayerOrder::kSequential
                          : norms == 2 ? SublayerOrder::kParallel
                                       : SublayerOrder::kParallelOneNorm;
}

void write_architecture(const C& config, nlohmann::json& json) {
  const bool whole = config.kv_heads() == config.num_heads, one = config.kv_heads() == 1;
  const bool two_norms = config.sublayer_order == SublayerOrder::kParallel;
  const bool grouped = two_norms || (!whole && !one);
  json["new_decoder_architecture"] = grouped;
  json["parallel_attn"] = config.sublayer_order != SublayerOrder::kSequential;
  json["multi_query"] = !grouped && one;
  json["num_kv_heads"] = config.kv_heads();
  json["num_ln_in_parallel_attn"] = nullptr;
  if (grouped) json["num_ln_in_parallel_attn"] = two_norms ? 2 : 1;
}

WeightTable weights(const C& config) {
  const bool two_norms = config.sublayer_order == SublayerOrder::kParallel;
  WeightTable table;
  table.names = {{"embeddings.token.weight", {"word_embeddings.weight"}}, {"score.weight", {"score.weight"}}};
  // clang-format off
  add_weights_and_biases(table, {
      {"stack.blocks.{}.attention_norm",    {two_norms ? "h.{}.ln_attn" : "h.{}.input_layernorm"}},
      {"stack.blocks.{}.feed_forward_norm", {two_norms ? "h.{}.ln_mlp" : "h.{}.post_attention_layernorm"}},
      {"stack.final_norm",                  {"ln_f"}},
  });
  // clang-format on
  add_weights_and_biases(table, joint_projections(config, "h.{}", "h.{}.self_attention"));
  add_decoder_heads(table, config, "transformer.", "word_embeddings");
  return table;
}

C sized(std::int64_t hidden, std::int64_t layers, std::int64_t heads) {
  return of_size(base(), {65024, hidden, layers, heads});
}

C falcon_40b() {
  C config = sized(8192, 60, 128);
  config.num_kv_heads = 8;
  config.sublayer_order = SublayerOrder::kParallel;
  return config;
}

Family family() {
  return {
      .model_type = "falcon",
      .description = "Falcon (Almazrouei et al., 2023): rotary, multi-query, parallel sublayers",
      .heads = decoder_heads("Falcon"),
      .base = base(),
      .keys =
          {"Falcon",
           concatenated(
               {{
                    required_key("vocab_size", &C::vocab_size),
                    required_key("hidden_size", &C::hidden_size, "n_embed"),
                    required_key("num_hidden_layers", &C::num_layers, "n_layer"),
                    required_key("num_attention_heads", &C::num_heads, "n_head"),
                    optional_key("ffn_hidden_size", &C::intermediate_size),
                    optional_key("max_position_embeddings", &C::max_positions),
                    activation_key("activation"),
                    optional_key("layer_norm_epsilon", &C::layer_norm_eps),
                    // Of parallel sublayers it drops their sum.
                    expected_key("hidden_dropout", 0.0),
                    optional_key("attention_dropout", &C::attention_dropout),
                    optional_key("bias", {&C::qkv_bias, &C::attention_output_bias, &C::feed_forward_bias}),
                    {"new_decoder_architecture", read_architecture, write_architecture},
                    // Falcon scales ALiBi's distances, as no other family does.
                    expected_key("alibi", false),
                    ignored_keys({"apply_residual_connection_post_layernorm", "multi_query", "num_kv_heads"}),
                },
                usual_end_keys(),
                rope_keys()})},
      .presets = {{"falcon-7b", "Falcon 7B", sized(4544, 32, 71)},
                  {"falcon-40b", "Falcon 40B", falcon_40b()}},
      .weight_table = weights,
  };
}

}  // namespace zoo::family::falcon
