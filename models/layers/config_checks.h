#pragma once

#include "models/layers/transformer_config.h"

namespace zoo {

// Far beyond any model, and a width of (H + 2 Hkv) D does not overflow.
constexpr std::int64_t kMostLayers = 100'000, kLargestSize = std::int64_t{1} << 30;

/// TransformerConfig::validate(): the range of each field, and which fields go together.
void check_config(const TransformerConfig& config);

}  // namespace zoo
