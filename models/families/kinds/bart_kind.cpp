#include "models/families/kinds/bart_kind.h"

#include <nlohmann/json.hpp>

namespace zoo {
namespace {

using C = TransformerConfig;

// A size that both stacks must have, though each has a key for it; `usual` is transformers' default.
ConfigKey shared_key(const std::string& name, std::int64_t C::*field, std::int64_t usual) {
  const std::string encoder = "encoder_" + name, decoder = "decoder_" + name;
  const auto read = [=](const ConfigReader& reader, C& config) {
    config.*field = reader.require_int(encoder.c_str());
    if (reader.get_int(decoder.c_str(), usual) != config.*field)
      reader.refuse(decoder.c_str(), "expected " + encoder + ", " + std::to_string(config.*field));
  };
  const auto write = [=](const C& config, nlohmann::json& json) {
    json[encoder] = json[decoder] = config.*field;
  };
  return {encoder, read, write};
}

ConfigKey decoder_layers_key() {
  const auto read = [](const ConfigReader& reader, C& config) {
    config.num_decoder_layers = reader.get_int("decoder_layers", config.num_layers);
    if (config.num_decoder_layers == 0) reader.refuse("decoder_layers", "expected at least 1");
  };
  const auto write = [](const C& config, nlohmann::json& json) {
    json["decoder_layers"] = config.decoder_layers();
  };
  return {"decoder_layers", read, write};
}

ConfigKey embedding_scale_key() {
  const auto read = [](const ConfigReader& reader, C& config) {
    const bool usual = reader.get_string("model_type", "") == "m2m_100";  // transformers' default
    config.embedding_scale = reader.get_bool("scale_embedding", usual) ? 0.0 : 1.0;
  };
  const auto write = [](const C& config, nlohmann::json& json) {
    json["scale_embedding"] = config.token_scale() != 1.0;
  };
  return {"scale_embedding", read, write};
}

void add_stack(WeightTable& table, const std::string& stack, std::int64_t layers, bool is_decoder) {
  const std::string ours = "stack." + stack + ".blocks.{}.", theirs = stack + ".layers.{}.";
  WeightTable block;
  // clang-format off
  add_weights_and_biases(block, {
      {ours + "attention.qkv",     q_k_v(theirs + "self_attn.", "_proj")},
      {ours + "attention.out",     {theirs + "self_attn.out_proj"}},
      {ours + "attention_norm",    {theirs + "self_attn_layer_norm"}},
      {ours + "feed_forward.up",   {theirs + "fc1"}},
      {ours + "feed_forward.down", {theirs + "fc2"}},
      {ours + "feed_forward_norm", {theirs + "final_layer_norm"}},
  });
  if (is_decoder) {
    const std::vector<std::string> cross = q_k_v(theirs + "encoder_attn.", "_proj");
    add_weights_and_biases(block, {
        {ours + "cross_attention.q",    {cross[0]}},
        {ours + "cross_attention.kv",   {cross[1], cross[2]}},
        {ours + "cross_attention.out",  {theirs + "encoder_attn.out_proj"}},
        {ours + "cross_attention_norm", {theirs + "encoder_attn_layer_norm"}},
    });
  }
  // clang-format on
  table.names = concatenated(table.names, expand_layers(block.names, layers));
  const std::string embeddings = is_decoder ? "decoder_embeddings." : "embeddings.";
  const std::string positions = stack + ".embed_positions.weight";
  table.names.push_back({embeddings + "position.weight", {positions}});
  table.names.push_back({.ours = embeddings + "sinusoids", .theirs = {positions}, .optional = true});
  add_weights_and_biases(table, {{embeddings + "norm", {stack + ".layernorm_embedding"}},
                                 {"stack." + stack + ".final_norm", {stack + ".layer_norm"}}});
  table.tied.emplace_back(stack + ".embed_tokens.weight", "shared.weight");
}

}  // namespace

TransformerConfig bart_base() {
  C config;
  config.shape = Shape::kEncoderDecoder;
  config.norm_placement = NormPlacement::kPost;
  config.position_offset = 2;
  config.activation = Activation::kGelu;
  config.embedding_norm = config.output_bias = true;
  config.embedding_dropout = config.dropout = 0.1;
  config.max_positions = 1024;
  config.pad_token_id = 1;
  config.decoder_start_token_id = 2;
  config.trains_padding = false;
  config.initial_weights = InitialWeights::kNormal;
  return config;
}

std::vector<ConfigKey> bart_keys() {
  return {
      required_key("vocab_size", &C::vocab_size),
      required_key("d_model", &C::hidden_size),
      required_key("encoder_layers", &C::num_layers),
      decoder_layers_key(),
      shared_key("attention_heads", &C::num_heads, 16),
      shared_key("ffn_dim", &C::intermediate_size, 4096),
      optional_key("max_position_embeddings", &C::max_positions),
      activation_key("activation_function"),
      optional_key("init_std", &C::initializer_range),
      optional_key("dropout", {&C::dropout, &C::embedding_dropout}),
      optional_key("attention_dropout", &C::attention_dropout),
      optional_key("activation_dropout", &C::activation_dropout),
      embedding_scale_key(),
      pad_token_key(),
      id_key("decoder_start_token_id", &C::decoder_start_token_id),
      optional_key("tie_word_embeddings", &C::tie_word_embeddings),
      optional_key("encoder_layerdrop", &C::layer_dropout),
      optional_key("decoder_layerdrop", &C::decoder_layer_dropout),
      // The first seven are of files that came with transformers 2 to 4.
      alias_keys({{"hidden_size", "d_model"},
                  {"num_attention_heads", "encoder_attention_heads"},
                  {"num_hidden_layers", "encoder_layers"}}),
      ignored_keys({"_num_labels", "add_bias_logits", "add_final_layer_norm", "classif_dropout",
                    "extra_pos_embeddings", "normalize_before", "normalize_embedding",
                    "static_position_embeddings", "force_bos_token_to_be_generated", "id2label", "is_decoder",
                    "problem_type", "replacing_rate", "student_decoder_layers", "student_encoder_layers"}),
  };
}

std::vector<ConfigKey> bart_head_keys(std::int64_t labels) {
  ConfigKey names = then_read(label_keys(), [labels](const ConfigReader& reader, C& config) {
    if (!reader.has("id2label") && !reader.has("num_labels")) config.num_labels = labels;
  });
  names.write = [labels, write = names.write](const C& config, nlohmann::json& json) {
    write(config, json);
    if (config.num_labels != labels && !json.contains("id2label")) json["num_labels"] = config.num_labels;
  };
  ConfigKey end = id_key("eos_token_id", &C::eos_token_id);
  end.read = [read = end.read](const ConfigReader& reader, C& config) {
    // A list is of tokens that end a generated text.
    if (reader.has("eos_token_id") && !reader.at("eos_token_id").is_number()) config.eos_token_id = -1;
    else read(reader, config);
  };
  return {names, end, optional_key("classifier_dropout", &C::classifier_dropout)};
}

WeightTable bart_weights(const TransformerConfig& config) {
  WeightTable table{.names = {{"embeddings.token.weight", {"shared.weight"}},
                              {.ours = "output_bias", .theirs = {"final_logits_bias"}, .optional = true}}};
  add_stack(table, "encoder", config.num_layers, /*is_decoder=*/false);
  add_stack(table, "decoder", config.decoder_layers(), /*is_decoder=*/true);
  if (config.tie_word_embeddings) {
    table.tied.emplace_back("lm_head.weight", "shared.weight");
  } else {
    table.names.push_back({"lm_head.weight", {"lm_head.weight"}});
    table.writes_tied = true;  // without the tie, transformers wants each stack's embedding
  }
  table.prefix = "model.";
  table.ignored = {"encoder.version", "decoder.version"};  // of fairseq
  add_weights_and_biases(table, {{"sentence_dense", {"classification_head.dense"}},
                                 {"sentence_classifier", {"classification_head.out_proj"}},
                                 {"span", {"qa_outputs"}}});
  table.unprefixed = {"lm_head.", "final_logits_bias", "classification_head.", "qa_outputs."};
  return table;
}

std::vector<Family::HeadEntry> bart_heads(const std::string& name, const std::string& generator) {
  return {{Head::kSeq2SeqLm, generator.empty() ? name + "ForConditionalGeneration" : generator},
          {Head::kBase, name + "Model"}};
}

std::vector<Family::HeadEntry> bart_classifiers(const std::string& name) {
  return {{Head::kSequenceClassification, name + "ForSequenceClassification"},
          {Head::kQuestionAnswering, name + "ForQuestionAnswering"}};
}

TransformerConfig bart_sized(TransformerConfig base, const Sizes& sizes) {
  base.num_decoder_layers = sizes.layers;
  return of_size(std::move(base), sizes);
}

}  // namespace zoo
