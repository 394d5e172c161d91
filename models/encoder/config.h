#pragma once

#include <nlohmann/json_fwd.hpp>

#include "models/formats/config_words.h"

namespace zoo::encoder {

/// What Hugging Face takes for keys that BERT, RoBERTa and ALBERT share, where config.json does not say them.
struct ConfigDefaults {
  const char* hidden_act = "gelu";
  double dropout = 0.1;
  std::int64_t pad_token_id = 0;
};

/// An encoder with norms behind its sublayers, from the keys that the three families share. Throws Error
/// naming the key.
TransformerConfig read_shared_keys(const ConfigReader& reader, const ConfigDefaults& defaults);

/// Those keys of a configuration. Throws Error saying what `family` has no key for.
nlohmann::json write_shared_keys(const TransformerConfig& config, const char* family);

/// Throws Error saying what the config.json of an encoder, called `family`, has no key for.
void check_expressible(const TransformerConfig& config, const char* family);

/// The key `key`: the dropout of heads that classify, of sequences and of tokens; without it `fallback`.
void read_classifier_dropout(const ConfigReader& reader, const char* key, double fallback,
                             TransformerConfig& config);

}  // namespace zoo::encoder
