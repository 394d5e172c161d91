#pragma once

#include <string>
#include <vector>

#include "models/layers/transformer_config.h"

namespace zoo {

// Far beyond any model, and a width of (H + 2 Hkv) D does not overflow.
constexpr std::int64_t kMostLayers = 100'000, kLargestSize = std::int64_t{1} << 30;

/// The features of a model that the engine of packed weights lacks, each as "field = value". A feature is a
/// field of the resolved configuration that differs from TransformerConfig's default; the table of fields
/// (config_fields.cpp) says whether it is computed.
std::vector<std::string> missing_features(const TransformerConfig& config);

/// One message for each number outside the range that the table of fields gives it.
std::vector<std::string> range_faults(const TransformerConfig& config);

}  // namespace zoo
