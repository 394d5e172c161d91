#include "models/families/kinds/bert_kind.h"

#include <nlohmann/json.hpp>

namespace zoo {

using C = TransformerConfig;

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
  return concatenated({usual_size_keys(),
                       {
                           required_key("max_position_embeddings", &C::max_positions),
                           optional_key("type_vocab_size", &C::type_vocab_size),
                           activation_key("hidden_act"),
                           optional_key("layer_norm_eps", &C::layer_norm_eps),
                           optional_key("hidden_dropout_prob", {&C::dropout, &C::embedding_dropout}),
                           optional_key("attention_probs_dropout_prob", &C::attention_dropout),
                           own_key("tie_prediction_bias", {&C::tie_prediction_bias}, false),
                           expected_key("position_embedding_type", "absolute"),
                           expected_key("is_decoder", false),
                           expected_key("add_cross_attention", false),
                       },
                       usual_end_keys()});
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

std::vector<WeightName> bert_weights(const BertAttention& names) {
  const std::string attention = "encoder.layer.{}.attention.";
  std::vector<std::string> projections;
  for (const std::string& name : names.projections) projections.push_back(attention + name);
  // clang-format off
  WeightTable table{.names = {
      {"embeddings.token.weight",      {"embeddings.word_embeddings.weight"}},
      {"embeddings.position.weight",   {"embeddings.position_embeddings.weight"}},
      {"embeddings.token_type.weight", {"embeddings.token_type_embeddings.weight"}},
  }};
  add_weights_and_biases(table, {
      {"embeddings.norm",                    {"embeddings.LayerNorm"}},
      {"stack.blocks.{}.attention.qkv",      projections},
      {"stack.blocks.{}.attention.out",      {attention + names.out}},
      {"stack.blocks.{}.attention_norm",     {attention + names.norm}},
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

void add_roberta_heads(WeightTable& table, const TransformerConfig& config) {
  add_weights_and_biases(table, {{"prediction_dense", {"lm_head.dense"}},
                                 {"prediction_norm", {"lm_head.layer_norm"}},
                                 {"sentence_dense", {"classifier.dense"}},
                                 {"sentence_classifier", {"classifier.out_proj"}}});
  add_masked_lm_projection(table, config, "lm_head.decoder", "lm_head.bias");
  table.unprefixed = {"lm_head.", "classifier.", "qa_outputs."};
  table.of_heads = {"pooler."};
  table.ignored = {"embeddings.position_ids"};
}

void add_masked_lm_projection(WeightTable& table, const TransformerConfig& config, const std::string& decoder,
                              const std::string& bias) {
  table.names.push_back({"prediction_bias", {bias}});
  if (config.tie_word_embeddings || config.tie_prediction_bias) {
    table.tied = {{decoder + ".bias", bias}};
    table.renamed = {{bias, decoder + ".bias"}};
  }
  if (config.tie_word_embeddings) {
    table.tied.emplace_back(decoder + ".weight", "embeddings.word_embeddings.weight");
  } else if (config.tie_prediction_bias) {
    table.names.push_back({"decoder.weight", {decoder + ".weight"}});
    table.writes_tied = true;  // without tie_word_embeddings, transformers wants both biases
  } else {
    add_weights_and_biases(table, {{"decoder", {decoder}}});
    // transformers 4 kept one bias for both.
    table.renamed = {{decoder + ".bias", bias}};
  }
}

}  // namespace zoo
