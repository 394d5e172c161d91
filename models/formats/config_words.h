#pragma once

#include <nlohmann/json_fwd.hpp>

#include "models/formats/config_reader.h"
#include "models/layers/transformer_config.h"

namespace zoo {

// Keys and words that several families' config.json share.

/// An elementwise activation under Hugging Face's name ("gelu", "gelu_new", "relu", "silu", …). Throws Error
/// for a name that the zoo does not know.
Activation read_activation(const ConfigReader& reader, const char* key, const std::string& fallback);

/// Hugging Face's name. Throws Error for an activation that has none.
std::string activation_word(Activation activation);

/// pad_token_id: absent it is `fallback`, null says none.
void read_pad_token(const ConfigReader& reader, std::int64_t fallback, TransformerConfig& config);

/// id2label or num_labels, and problem_type.
void read_labels(const ConfigReader& reader, TransformerConfig& config);

/// pad_token_id, id2label, label2id and problem_type, as far as they are not the defaults of Hugging Face.
void write_pad_token_and_labels(const TransformerConfig& config, nlohmann::json& json);

}  // namespace zoo
