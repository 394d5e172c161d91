#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "models/layers/transformer_config.h"

namespace zoo::gpt {

/// Reads Hugging Face's GPT2Config. A key "bias": false, which is ours, says that the model has no biases.
/// Throws Error naming the key and `source`.
TransformerConfig read_config(const nlohmann::json& json, const std::string& source);

/// Throws Error for what GPT2Config has no key for: other positions or norms, grouped heads, a bias here and
/// there.
nlohmann::json write_config(const TransformerConfig& config);

}  // namespace zoo::gpt
