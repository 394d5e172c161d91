// T5 1.0 and 1.1 (Raffel et al., 2020): an encoder and a decoder that share their token embedding. RMSNorm
// before the sublayers, relative positions as a learned bias of the scores (one table a stack), no biases
// elsewhere, and unscaled attention, whose factor is in the initial weights. Version 1.1 has a gated
// feed-forward and an output projection of its own, whose input is not scaled. mT5 (Xue et al., 2021) is
// version 1.1 in 101 languages; UMT5 (Chung et al., 2023) has a table of positions in each layer.

#include <optional>

#include <nlohmann/json.hpp>

#include "models/encoder/encoder.h"
#include "models/families/kinds/shared.h"
#include "models/formats/weight_files.h"

namespace zoo::family::t5 {

C base() {
  C config;
  config.shape = Shape::kEncoderDecoder;
  config.position = PositionKind::kT5Buckets;
  config.norm = NormKind::kRmsNorm;
  config.layer_norm_eps = 1e-6;
  config.activation = Activation::kRelu;
  config.attention_scale = 1.0;
  config.logits_scale = 0.0;
  config.qkv_bias = config.attention_output_bias = config.feed_forward_bias = config.norm_bias = false;
  config.head_dim = 64;
  config.max_positions = 512;
  config.dropout = config.embedding_dropout = config.attention_dropout = 0.1;
  config.activation_dropout = config.final_dropout = 0.1;
  config.initializer_range = 1.0;
  config.initial_weights = InitialWeights::kByWidth;
  config.pad_token_id = 0;
  return config;
}

// feed_forward_proj names the activation and whether it is the gate of a linear unit; the class keeps both in
// dense_act_fn and is_gated_act, which are obeyed where a file has them. "gated-gelu" means the tanh
// approximation.
void read_feed_forward(const ConfigReader& reader, C& config) {
  const char *projection = "feed_forward_proj", *inner = "dense_act_fn", *gated = "is_gated_act";
  const bool is_gated_base = config.activation == Activation::kGeGluTanh;
  const std::string said = reader.get_string(projection, is_gated_base ? "gated-gelu" : "relu");
  const bool says_gated = said.starts_with("gated-");
  std::string name = says_gated ? said.substr(6) : said;
  if (said == "gated-gelu") name = "gelu_new";
  name = reader.is_null(inner) ? "null" : reader.get_string(inner, name);
  const char* key = reader.has(inner) || reader.is_null(inner) ? inner : projection;
  const std::optional<Activation> elementwise = activation_named(name);
  if (!elementwise) reader.refuse(key, "expected one of " + activation_names());
  config.activation = *elementwise;
  if (reader.is_null(gated) || !reader.get_bool(gated, says_gated)) return;
  const std::optional<Activation> unit = gated_unit(*elementwise);
  if (!unit) reader.refuse(key, "gates have the activations silu, gelu, gelu_new and relu");
  config.activation = *unit;
}

void write_feed_forward(const C& config, nlohmann::json& json) {
  const std::string name = activation_name(gate_of(config.activation));
  json["feed_forward_proj"] = is_gated(config.activation) ? "gated-" + name : name;
  if (config.activation == Activation::kGeGluTanh) json["feed_forward_proj"] = "gated-gelu";
  if (config.activation == Activation::kGeGlu) json["dense_act_fn"] = name;
}

// The class tells an encoder alone.
ConfigKey shape_key(const std::string& encoder_class) {
  const auto read = [=](const ConfigReader& reader, C& config) {
    if (reader.has("architectures") && reader.at("architectures") == nlohmann::json{encoder_class})
      config.shape = Shape::kEncoder;
  };
  const auto write = [=](const C& config, nlohmann::json& json) {
    const bool encoder = config.shape == Shape::kEncoder;
    json["is_encoder_decoder"] = !encoder;
    if (encoder) json["architectures"] = {encoder_class};
  };
  return {"architectures", read, write};
}

void read_decoder_layers(const ConfigReader& reader, C& config) {
  const std::int64_t layers = reader.get_int("num_decoder_layers", 0);
  if (config.shape == Shape::kEncoderDecoder && reader.has("num_decoder_layers") && layers == 0)
    reader.refuse("num_decoder_layers", "expected at least 1, or null for as many as the encoder has");
  if (config.shape == Shape::kEncoderDecoder) config.num_decoder_layers = layers;
}

void write_decoder_layers(const C& config, nlohmann::json& json) {
  json["num_decoder_layers"] = config.decoder_layers();
}

// transformers 4 says with tie_word_embeddings both whether the output projection is the embedding and
// whether its input is scaled. transformers 5 always writes true, says the second with scale_decoder_outputs,
// and leaves the first to the file (complete_config). There null means false.
void read_output(const ConfigReader& reader, C& config) {
  config.tie_word_embeddings = reader.get_bool("tie_word_embeddings", true);
  const bool scaled = !reader.is_null("scale_decoder_outputs") &&
                      reader.get_bool("scale_decoder_outputs", config.tie_word_embeddings);
  config.logits_scale = scaled ? 0.0 : 1.0;
}

void write_output(const C& config, nlohmann::json& json) {
  const bool scaled = config.output_scale() != 1.0;
  json["tie_word_embeddings"] = config.tie_word_embeddings;
  if (scaled != config.tie_word_embeddings) json["scale_decoder_outputs"] = scaled;
}

ConfigKeys keys(const char* family, const ConfigKey& output) {
  ConfigKey start = id_key("decoder_start_token_id", &C::decoder_start_token_id);
  start.read = [](const ConfigReader& reader, C& config) {
    config.decoder_start_token_id = reader.get_int("decoder_start_token_id", -1);
  };
  return {family,
          {
              shape_key(family + std::string("EncoderModel")),
              required_key("vocab_size", &C::vocab_size),
              required_key("d_model", &C::hidden_size),
              optional_key("d_kv", &C::head_dim),
              required_key("d_ff", &C::intermediate_size),
              required_key("num_layers", &C::num_layers),
              {"num_decoder_layers", read_decoder_layers, write_decoder_layers},
              required_key("num_heads", &C::num_heads),
              optional_key("relative_attention_num_buckets", &C::relative_buckets),
              optional_key("relative_attention_max_distance", &C::relative_max_distance),
              optional_key("n_positions", &C::max_positions),
              {"feed_forward_proj", read_feed_forward, write_feed_forward, {&C::activation}},
              optional_key("layer_norm_epsilon", &C::layer_norm_eps),
              optional_key("initializer_factor", &C::initializer_range),
              optional_key("dropout_rate", {&C::dropout, &C::embedding_dropout, &C::attention_dropout,
                                            &C::activation_dropout, &C::final_dropout}),
              pad_token_key(),
              alias_keys({{"head_dim", "d_kv"},
                          {"hidden_size", "d_model"},
                          {"num_attention_heads", "num_heads"},
                          {"num_hidden_layers", "num_layers"}}),
              ignored_keys({"classifier_dropout", "id2label", "is_decoder", "n_layers", "output_past",
                            "problem_type", "scalable_attention"}),
              start,
              output,
          }};
}

// The first block of a stack holds the positions of all, unless each has its own.
void add_stack(const std::string& ours, const std::string& theirs, const C& config, WeightTable& table) {
  const std::string block = ours + "blocks.{}.", layer = theirs + "block.{}.layer.";
  const std::string positions = "0.SelfAttention.relative_attention_bias.weight";
  const std::string last = layer + (config.cross_attention ? "2." : "1."), dense = last + "DenseReluDense.";
  std::vector<std::string> up{dense + "wi.weight"};
  if (is_gated(config.activation)) up = {dense + "wi_0.weight", dense + "wi_1.weight"};
  // clang-format off
  std::vector<WeightName> names{
      {block + "attention_norm.weight", {layer + "0.layer_norm.weight"}},
      {block + "attention.qkv.weight",  q_k_v(layer + "0.SelfAttention.", ".weight")},
      {block + "attention.out.weight",  {layer + "0.SelfAttention.o.weight"}},
  };
  if (config.cross_attention) names.insert(names.end(), {
      {block + "cross_attention_norm.weight", {layer + "1.layer_norm.weight"}},
      {block + "cross_attention.q.weight",    {layer + "1.EncDecAttention.q.weight"}},
      {block + "cross_attention.kv.weight",   {layer + "1.EncDecAttention.k.weight",
                                               layer + "1.EncDecAttention.v.weight"}},
      {block + "cross_attention.out.weight",  {layer + "1.EncDecAttention.o.weight"}},
  });
  names.insert(names.end(), {
      {block + "feed_forward_norm.weight",       {last + "layer_norm.weight"}},
      {block + "feed_forward.up.weight",         up},
      {block + "feed_forward.down.weight",       {dense + "wo.weight"}},
      {block + "attention.position_bias.weight", {layer + positions}},
  });
  // clang-format on
  table.names.push_back({ours + "position_bias.weight", {theirs + "block.0.layer." + positions}});
  table.names = concatenated(table.names, expand_layers(names, config.num_layers));
  table.names.push_back({ours + "final_norm.weight", {theirs + "final_layer_norm.weight"}});
}

WeightTable weights(const C& config) {
  WeightTable table{.names = {{"embeddings.token.weight", {"shared.weight"}}}};
  table.tied = {{"encoder.embed_tokens.weight", "shared.weight"}};
  if (config.shape == Shape::kEncoder) {
    add_stack("stack.", "encoder.", config, table);
    table.ignored = {"decoder.", "lm_head."};  // the files of a whole model
    return table;
  }
  add_stack("stack.encoder.", "encoder.", config.encoder_part(), table);
  add_stack("stack.decoder.", "decoder.", config.decoder_part(), table);
  table.tied.emplace_back("decoder.embed_tokens.weight", "shared.weight");
  if (config.tie_word_embeddings) {
    table.tied.emplace_back("lm_head.weight", "shared.weight");
  } else {
    table.names.push_back({"lm_head.weight", {"lm_head.weight"}});
  }
  table.of_heads = {"lm_head."};
  // Unused by every release: only self-attention has positions.
  table.ignored = {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"};
  return table;
}

// As transformers 5, whatever tie_word_embeddings says: a projection beside the embedding is one of its own
// unless the two are equal, and without one the embedding is the projection.
void complete_config(C& config, const WeightFiles& files) {
  const std::string projection = "lm_head.weight", embedding = "shared.weight";
  if (!files.contains(embedding)) return;
  if (!files.contains(projection)) {
    config.tie_word_embeddings = true;
  } else if (config.tie_word_embeddings) {
    config.tie_word_embeddings = files.equal(projection, embedding);
  }
}

constexpr std::int64_t kT5 = 32128, kMt5 = 250112, kUmt5 = 256384;  // sizes of the published vocabularies

C sized(std::int64_t hidden, std::int64_t layers, std::int64_t heads, std::int64_t inner,
        std::int64_t vocabulary = kT5) {
  C config = of_size(base(), {vocabulary, hidden, layers, heads, inner});
  config.num_decoder_layers = layers;
  config.decoder_start_token_id = 0;
  return config;
}

C v1_1(C config) {
  config.activation = Activation::kGeGluTanh;
  config.tie_word_embeddings = false;
  config.logits_scale = 1.0;
  return config;
}

C mt5_base() {
  C config = v1_1(base());
  config.tie_word_embeddings = true;
  config.decoder_start_token_id = 0;
  return config;
}

// What UMT5 changes in an mT5. Its logits are scaled as transformers 5 does, whatever tie_word_embeddings
// says.
C umt5(C config) {
  config.bucket_tables = BucketTables::kPerLayer;
  config.logits_scale = 0.0;
  return config;
}

C tiny() {
  C config = v1_1(sized(128, 3, 4, 256, 1024));
  config.head_dim = 32;
  return config;
}

// `name` is that of the classes.
Family t5_like(const char* model_type, const char* name, const char* description, const C& base,
               const ConfigKey& output, std::vector<Preset> presets) {
  return {
      .model_type = model_type,
      .description = description,
      .heads = {{Head::kSeq2SeqLm, std::string(name) + "ForConditionalGeneration"},
                {Head::kBase, std::string(name) + "Model"},
                {Head::kBase, std::string(name) + "EncoderModel"}},
      .base = base,
      .keys = keys(name, output),
      .presets = std::move(presets),
      .build = encoder::builder_beside(build_encoder_decoder, "the encoder of a t5"),
      .weight_table = weights,
      .complete_config = complete_config,
  };
}

Family family() {
  return t5_like("t5", "T5",
                 "T5 (Raffel et al., 2020): encoder-decoder, pre-RMSNorm, bucketed relative positions, "
                 "unscaled attention",
                 base(), {"tie_word_embeddings", read_output, write_output},
                 {{"t5-small", "T5 small", sized(512, 6, 8, 2048)},
                  {"t5-base", "T5 base", sized(768, 12, 12, 3072)},
                  {"t5-large", "T5 large", sized(1024, 24, 16, 4096)},
                  {"t5-v1_1-small", "T5 1.1 small", v1_1(sized(512, 8, 6, 1024))},
                  {"t5-v1_1-base", "T5 1.1 base", v1_1(sized(768, 12, 12, 2048))},
                  {"t5-v1_1-large", "T5 1.1 large", v1_1(sized(1024, 24, 16, 2816))},
                  {"t5-tiny", "T5 1.1 for trying out on a CPU", tiny()}});
}

}  // namespace zoo::family::t5

namespace zoo::family::mt5 {

using namespace t5;

Family family() {
  return t5_like("mt5", "MT5", "mT5 (Xue et al., 2021): multilingual T5 1.1", mt5_base(),
                 optional_key("tie_word_embeddings", &C::tie_word_embeddings),
                 {{"mt5-small", "mT5 small", v1_1(sized(512, 8, 6, 1024, kMt5))},
                  {"mt5-base", "mT5 base", v1_1(sized(768, 12, 12, 2048, kMt5))},
                  {"mt5-large", "mT5 large", v1_1(sized(1024, 24, 16, 2816, kMt5))}});
}

}  // namespace zoo::family::mt5

namespace zoo::family::umt5 {

using namespace t5;

Family family() {
  return t5_like("umt5", "UMT5",
                 "UMT5 (Chung et al., 2023): mT5 with a table of relative positions in each layer",
                 t5::umt5(mt5_base()), optional_key("tie_word_embeddings", &C::tie_word_embeddings),
                 {{"umt5-small", "UMT5 small", t5::umt5(v1_1(sized(512, 8, 6, 1024, kUmt5)))},
                  {"umt5-base", "UMT5 base", t5::umt5(v1_1(sized(768, 12, 12, 2048, kUmt5)))},
                  {"umt5-xxl", "UMT5 xxl", t5::umt5(v1_1(sized(4096, 24, 64, 10240, kUmt5)))}});
}

}  // namespace zoo::family::umt5
