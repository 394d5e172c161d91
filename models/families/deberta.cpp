// DeBERTa-v3 (He et al., 2023): BERT's encoder without position embeddings, whose attention compares contents
// and distances apart (disentangled attention: He et al., 2021). Its class in Hugging Face is DeBERTa-v2's.

#include <nlohmann/json.hpp>

#include "models/families/kinds/bert_kind.h"

namespace zoo::family::deberta {

C base() {
  C config = bert_base();
  config.position = PositionKind::kDisentangled;
  config.relative_buckets = 256;
  config.type_vocab_size = 0;
  config.layer_norm_eps = 1e-7;
  config.max_positions = config.relative_max_distance = 512;
  return config;
}

// A key without which the class would compute something else.
ConfigKey stated_key(const std::string& name, const nlohmann::json& value) {
  const auto read = [name, value](const ConfigReader& reader, C&) {
    if (!reader.has(name.c_str()) || !reader.is(name.c_str(), value))
      reader.refuse(name.c_str(), "expected " + value.dump() + ", as in DeBERTa-v3");
  };
  const auto write = [name, value](const C&, nlohmann::json& json) { json[name] = value; };
  return {name, read, write};
}

// ["p2c", "c2p"], or joined by "|", in any order.
ConfigKey compared_key() {
  const char* name = "pos_att_type";
  const auto read = [name](const ConfigReader& reader, C&) {
    const std::string given = reader.has(name) ? reader.at(name).dump() : "";
    if (given.find("p2c") == std::string::npos || given.find("c2p") == std::string::npos)
      reader.refuse(name, R"(expected ["p2c", "c2p"])");
  };
  const auto write = [name](const C&, nlohmann::json& json) { json[name] = {"p2c", "c2p"}; };
  return {name, read, write};
}

// Below 1: as many as there are positions.
ConfigKey farthest_key() {
  const char* name = "max_relative_positions";
  const auto read = [name](const ConfigReader& reader, C& config) {
    const std::int64_t given = reader.get_int(name, -1);
    config.relative_max_distance = given < 1 ? config.max_positions : given;
  };
  const auto write = [name](const C& config, nlohmann::json& json) {
    json[name] = config.relative_max_distance;
  };
  return {name, read, write, {&C::relative_max_distance}};
}

// Dropout before the classification of sequences; tokens have that of the hidden states.
ConfigKey class_dropout_key() {
  const auto read = [](const ConfigReader& reader, C& config) {
    config.classifier_dropout = reader.get_double("cls_dropout", config.dropout);
    config.token_dropout = config.dropout;
  };
  const auto write = [](const C& config, nlohmann::json& json) {
    if (config.classifier_dropout != config.dropout) json["cls_dropout"] = config.classifier_dropout;
  };
  return {"cls_dropout", read, write, {&C::classifier_dropout, &C::token_dropout}};
}

// Sizes that other checkpoints of the class may have apart; `size` is a member.
template <class Size> ConfigKey equal_size_key(const char* name, Size size) {
  const auto read = [name, size](const ConfigReader& reader, C& config) {
    if (const std::int64_t expected = std::invoke(size, config); reader.get_int(name, expected) != expected)
      reader.refuse(name, "expected " + std::to_string(expected));
  };
  return {name, read, {}};
}

ConfigKeys keys() {
  return {"DeBERTa", concatenated(bert_keys(), {
                                                   class_dropout_key(),
                                                   expected_key("pooler_dropout", 0),
                                                   expected_key("pooler_hidden_act", "gelu"),
                                                   equal_size_key("pooler_hidden_size", &C::hidden_size),
                                                   equal_size_key("embedding_size", &C::hidden_size),
                                                   equal_size_key("attention_head_size", &C::head_size),
                                                   stated_key("relative_attention", true),
                                                   stated_key("share_att_key", true),
                                                   stated_key("norm_rel_ebd", "layer_norm"),
                                                   stated_key("position_biased_input", false),
                                                   compared_key(),
                                                   required_key("position_buckets", &C::relative_buckets),
                                                   farthest_key(),
                                                   expected_key("conv_kernel_size", 0),
                                                   expected_key("legacy", true),
                                               })};
}

WeightTable weights(const C& config) {
  WeightTable table{
      .names = bert_weights({.projections = {"self.query_proj", "self.key_proj", "self.value_proj"}})};
  table.names.push_back({"stack.distance_vectors.weight", {"encoder.rel_embeddings.weight"}});
  add_weights_and_biases(table, {{"stack.distance_norm", {"encoder.LayerNorm"}},
                                 {"prediction_dense", {"cls.predictions.transform.dense"}},
                                 {"prediction_norm", {"cls.predictions.transform.LayerNorm"}},
                                 {"sentence_dense", {"pooler.dense"}},
                                 {"sentence_classifier", {"classifier"}}});
  add_masked_lm_projection(table, config, "cls.predictions.decoder", "cls.predictions.bias");
  table.prefix = "deberta.";
  table.unprefixed = {"cls.", "pooler.", "classifier.", "qa_outputs."};
  // The last two are of the published files' pre-training.
  table.ignored = {"embeddings.position_ids", "embeddings.position_embeddings.weight", "lm_predictions.",
                   "mask_predictions."};
  return table;
}

C sized(std::int64_t layers, std::int64_t heads, std::int64_t hidden) {
  return of_size(base(), {128100, hidden, layers, heads});
}

Family family() {
  return {
      .model_type = "deberta-v2",
      .description =
          "DeBERTa-v3 (He et al., 2023): BERT with disentangled attention to contents and distances",
      .heads = encoder_heads("DebertaV2"),
      .base = base(),
      .keys = keys(),
      .presets = {{"deberta-v3-xsmall", "DeBERTa-v3 of width 384", sized(12, 6, 384)},
                  {"deberta-v3-small", "DeBERTa-v3 of 6 layers", sized(6, 12, 768)},
                  {"deberta-v3-base", "DeBERTa-v3 base", sized(12, 12, 768)},
                  {"deberta-v3-large", "DeBERTa-v3 large", sized(24, 16, 1024)}},
      .build = encoder::builder(
          {.sentence_layer = encoder::SentenceLayer{Activation::kGelu}, .has_pooler = false}),
      .weight_table = weights,
  };
}

}  // namespace zoo::family::deberta
