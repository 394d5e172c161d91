// ELECTRA (Clark et al., 2020): BERT's encoder, whose embeddings may be narrower than its layers. A small
// generator predicts masked words; the discriminator, the model that is kept, tells which words it replaced.

#include <nlohmann/json.hpp>

#include "models/families/kinds/bert_kind.h"

namespace zoo::family::electra {

// A width that equals the hidden size has no projection.
ConfigKey embedding_size_key() {
  const auto read = [](const ConfigReader& reader, C& config) {
    config.embedding_size = reader.get_int("embedding_size", 128);
    if (config.embedding_size < 1) reader.refuse("embedding_size", "expected a positive number");
    if (config.embedding_size == config.hidden_size) config.embedding_size = 0;
  };
  const auto write = [](const C& config, nlohmann::json& json) {
    json["embedding_size"] = config.embedding_width();
  };
  return {"embedding_size", read, write};
}

WeightTable weights(const C& config) {
  WeightTable table{.names = bert_weights(), .prefix = "electra."};
  // clang-format off
  add_weights_and_biases(table, {
      {"embeddings.projection", {"embeddings_project"}},
      {"prediction_dense",      {"generator_predictions.dense"}},
      {"prediction_norm",       {"generator_predictions.LayerNorm"}},
      {"discriminator_dense",   {"discriminator_predictions.dense"}},
      {"discriminator",         {"discriminator_predictions.dense_prediction"}},
      {"sentence_dense",        {"classifier.dense"}},
      {"sentence_classifier",   {"classifier.out_proj"}},
  });
  // clang-format on
  add_decoder_with_bias(table, config, "generator_lm_head", "embeddings.word_embeddings");
  table.unprefixed = {"generator_predictions.", "generator_lm_head.", "discriminator_predictions.",
                      "classifier.", "qa_outputs."};
  table.ignored = {"embeddings.position_ids"};
  return table;
}

C sized(std::int64_t embedding, std::int64_t layers, std::int64_t heads, std::int64_t hidden) {
  C config = of_size(bert_base(), {30522, hidden, layers, heads}, /*max_positions=*/512);
  config.embedding_size = embedding == hidden ? 0 : embedding;
  return config;
}

Family family() {
  return {
      .model_type = "electra",
      .description = "ELECTRA (Clark et al., 2020): BERT's encoder, trained to find replaced tokens",
      .heads = {{Head::kBase, "ElectraModel"},
                {Head::kMaskedLm, "ElectraForMaskedLM"},
                {Head::kReplacedTokens, "ElectraForPreTraining"},
                {Head::kSequenceClassification, "ElectraForSequenceClassification"},
                {Head::kTokenClassification, "ElectraForTokenClassification"},
                {Head::kQuestionAnswering, "ElectraForQuestionAnswering"}},
      .base = bert_base(),
      .keys = {"ELECTRA",
               concatenated(bert_keys(), {embedding_size_key(), classifier_dropout_key(),
                                          ignored_keys({"summary_activation", "summary_last_dropout",
                                                        "summary_type", "summary_use_proj"})})},
      .presets = {{"electra-small-discriminator", "ELECTRA small", sized(128, 12, 4, 256)},
                  {"electra-base-discriminator", "ELECTRA base", sized(768, 12, 12, 768)},
                  {"electra-large-discriminator", "ELECTRA large", sized(1024, 24, 16, 1024)},
                  {"electra-small-generator", "generator of ELECTRA small", sized(128, 12, 4, 256)},
                  {"electra-base-generator", "generator of ELECTRA base", sized(768, 12, 4, 256)},
                  {"electra-large-generator", "generator of ELECTRA large", sized(1024, 24, 4, 256)}},
      .build = encoder::builder({.sentence_layer = encoder::SentenceLayer{Activation::kGelu, /*drops=*/true},
                                 .has_pooler = false,
                                 .prediction_activation = Activation::kGelu,
                                 .keeps_spare_bias = false}),
      .weight_table = weights,
  };
}

}  // namespace zoo::family::electra
