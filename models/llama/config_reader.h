#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "models/layers/transformer_config.h"

namespace zoo::llama {

/// Reads Hugging Face's LlamaConfig as transformers 4 and 5 write it: the rotary base is `rope_theta` at the
/// top or inside `rope_parameters`; the scaling is `rope_scaling` or `rope_parameters` with a rope_type of
/// default, linear or llama3. Throws Error naming the key and `source`.
TransformerConfig read_config(const nlohmann::json& json, const std::string& source);

/// Throws Error for what LlamaConfig has no key for.
nlohmann::json write_config(const TransformerConfig& config);

}  // namespace zoo::llama
