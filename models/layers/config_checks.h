#pragma once

#include "models/layers/transformer_config.h"

namespace zoo {

constexpr std::int64_t kMostLayers = 100'000;  // far beyond any model

/// TransformerConfig::validate(): which values each field may have, and which fields go together.
void check_config(const TransformerConfig& config);

}  // namespace zoo
