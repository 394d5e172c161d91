#include "models/families/kinds/bert_kind.h"

namespace zoo::family::distilbert {

C base() {
  C config = bert_base();  // no key says its layer_norm_eps
  config.type_vocab_size = 0;
  config.dropped_outputs = DroppedOutputs::kFeedForward;
  config.classifier_dropout = 0.2;
  config.answer_dropout = 0.1;
  return config;
}

WeightTable weights(const C& config) {
  // clang-format off
  WeightTable table{.names = {
      {"embeddings.token.weight",    {"embeddings.word_embeddings.weight"}},
      {"embeddings.position.weight", {"embeddings.position_embeddings.weight"}},
  }};
  add_weights_and_biases(table, {
      {"embeddings.norm",                    {"embeddings.LayerNorm"}},
      {"stack.blocks.{}.attention.qkv",      q_k_v("transformer.layer.{}.attention.", "_lin")},
      {"stack.blocks.{}.attention.out",      {"transformer.layer.{}.attention.out_lin"}},
      {"stack.blocks.{}.attention_norm",     {"transformer.layer.{}.sa_layer_norm"}},
      {"stack.blocks.{}.feed_forward.up",    {"transformer.layer.{}.ffn.lin1"}},
      {"stack.blocks.{}.feed_forward.down",  {"transformer.layer.{}.ffn.lin2"}},
      {"stack.blocks.{}.feed_forward_norm",  {"transformer.layer.{}.output_layer_norm"}},
      {"prediction_dense",                   {"vocab_transform"}},
      {"prediction_norm",                    {"vocab_layer_norm"}},
      {"sentence_dense",                     {"pre_classifier"}},
      {"sentence_classifier",                {"classifier"}},
      {"token_classifier",                   {"classifier"}},
      {"span",                               {"qa_outputs"}},
  });
  // clang-format on
  table.prefix = "distilbert.";
  table.unprefixed = {"vocab_transform.", "vocab_layer_norm.", "vocab_projector.",
                      "pre_classifier.",  "classifier.",       "qa_outputs."};
  add_decoder_with_bias(table, config, "vocab_projector", "embeddings.word_embeddings");
  table.ignored = {"embeddings.position_ids"};
  return table;
}

C sized(std::int64_t vocab_size) { return of_size(base(), {vocab_size, 768, 6, 12}, /*max_positions=*/512); }

Family family() {
  return {
      .model_type = "distilbert",
      .description = "DistilBERT (Sanh et al., 2019): BERT with half its layers, without segments or pooler",
      .heads = encoder_heads("DistilBert"),
      .base = base(),
      .keys = {"DistilBERT",
               concatenated(
                   {{
                        required_key("vocab_size", &C::vocab_size),
                        required_key("dim", &C::hidden_size),
                        required_key("n_layers", &C::num_layers),
                        required_key("n_heads", &C::num_heads),
                        required_key("hidden_dim", &C::intermediate_size),
                        required_key("max_position_embeddings", &C::max_positions),
                        activation_key("activation"),
                        optional_key("dropout", {&C::dropout, &C::embedding_dropout, &C::token_dropout}),
                        optional_key("attention_dropout", &C::attention_dropout),
                        optional_key("seq_classif_dropout", &C::classifier_dropout),
                        optional_key("qa_dropout", &C::answer_dropout),
                        // The table of positions begins as sinusoids; a checkpoint holds it like any other.
                        {"sinusoidal_pos_embds",
                         [](const ConfigReader& reader, C&) {
                           reader.get_bool("sinusoidal_pos_embds", false);
                         },
                         {}},
                        alias_keys({{"hidden_size", "dim"},
                                    {"num_attention_heads", "n_heads"},
                                    {"num_hidden_layers", "n_layers"}}),
                        ignored_keys({"tie_weights_"}),
                    },
                    usual_end_keys()})},
      .presets = {{"distilbert-base-uncased", "DistilBERT", sized(30522)},
                  {"distilbert-base-cased", "DistilBERT, cased", sized(28996)}},
      .build = encoder::builder({.sentence_layer = encoder::SentenceLayer{Activation::kRelu},
                                 .has_pooler = false,
                                 .keeps_spare_bias = false}),
      .weight_table = weights,
  };
}

}  // namespace zoo::family::distilbert
