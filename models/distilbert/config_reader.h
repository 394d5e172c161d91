#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "models/layers/transformer_config.h"

namespace zoo::distilbert {

/// Reads Hugging Face's DistilBertConfig. Throws Error naming the key and `source`.
TransformerConfig read_config(const nlohmann::json& json, const std::string& source);

/// Throws Error for what DistilBertConfig has no key for.
nlohmann::json write_config(const TransformerConfig& config);

}  // namespace zoo::distilbert
