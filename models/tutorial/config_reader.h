#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "models/layers/transformer_config.h"

namespace zoo::tutorial {

/// config.json with GPT-2's names (vocab_size, n_embd, n_positions, n_head) and num_labels or id2label.
TransformerConfig read_language_config(const nlohmann::json& config, const std::string& source);
TransformerConfig read_classifier_config(const nlohmann::json& config, const std::string& source);

nlohmann::json write_language_config(const TransformerConfig& config);
nlohmann::json write_classifier_config(const TransformerConfig& config);

}  // namespace zoo::tutorial
