// RoBERTa (Liu et al., 2019): BERT without next sentences. Positions are counted from pad_token_id + 1 and
// skip padding, by the ids alone; the classifier of sequences has two layers. XLM-RoBERTa (Conneau et al.,
// 2020) is the same model.

#include "models/families/kinds/bert_kind.h"

namespace zoo::family::roberta {

C base() {
  C config = bert_base();
  config.position_count = PositionCount::kNotPadding;
  config.type_vocab_size = 1;
  config.pad_token_id = 1;
  return config;
}

// RobertaConfig has two segments where a file does not say that there is one, as all published files do.
ConfigKey segments_key() {
  const auto read = [](const ConfigReader& reader, C& config) {
    config.type_vocab_size = reader.get_int("type_vocab_size", 2);
  };
  return {"type_vocab_size", read, {}};
}

WeightTable weights(const C& config) {
  WeightTable table{.names = bert_weights(), .prefix = "roberta."};
  add_roberta_heads(table, config);
  return table;
}

constexpr std::int64_t kEnglish = 50265, kXlm = 250002;  // sizes of the published vocabularies

C sized(std::int64_t vocabulary, std::int64_t layers, std::int64_t heads, std::int64_t hidden) {
  C config = of_size(base(), {vocabulary, hidden, layers, heads}, /*max_positions=*/514);
  config.layer_norm_eps = 1e-5;
  return config;
}

// `name` is that of the classes.
Family roberta_like(const std::string& model_type, const std::string& name, const std::string& description,
                    std::vector<Preset> presets) {
  return {
      .model_type = model_type,
      .description = description,
      .heads = encoder_heads(name),
      .base = base(),
      .keys = {"RoBERTa", concatenated(bert_keys(),
                                       {classifier_dropout_key(), segments_key(), required_pad_token_key()})},
      .presets = std::move(presets),
      .build = encoder::builder(kRobertaStyle),
      .weight_table = weights,
  };
}

Family family() {
  return roberta_like(
      "roberta", "Roberta",
      "RoBERTa (Liu et al., 2019): BERT without next sentences, positions counted after the padding's",
      {{"roberta-base", "RoBERTa base", sized(kEnglish, 12, 12, 768)},
       {"roberta-large", "RoBERTa large", sized(kEnglish, 24, 16, 1024)}});
}

}  // namespace zoo::family::roberta

namespace zoo::family::xlm_roberta {

using namespace roberta;

Family family() {
  return roberta_like("xlm-roberta", "XLMRoberta",
                      "XLM-RoBERTa (Conneau et al., 2020): RoBERTa with a vocabulary for 100 languages",
                      {{"xlm-roberta-base", "XLM-RoBERTa base", sized(kXlm, 12, 12, 768)},
                       {"xlm-roberta-large", "XLM-RoBERTa large", sized(kXlm, 24, 16, 1024)}});
}

}  // namespace zoo::family::xlm_roberta
