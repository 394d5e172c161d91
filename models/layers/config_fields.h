#pragma once

#include <string>
#include <vector>

#include "models/layers/transformer_config.h"

namespace zoo {

// Far beyond any model, and a width of (H + 2 Hkv) D does not overflow.
constexpr std::int64_t kMostLayers = 100'000, kLargestSize = std::int64_t{1} << 30;

/// Engines that compute a model in their own way, beside its modules.
enum class Engine : unsigned { kPacked = 1, kTorchScript = 2 };

/// The features of a model that an engine lacks, each as "field = value". A feature is a field of the
/// resolved configuration that differs from TransformerConfig's default; the table of fields
/// (config_fields.cpp) names the engines that compute it.
std::vector<std::string> missing_features(const TransformerConfig& config, Engine engine);

/// One message for each number outside the range that the table of fields gives it.
std::vector<std::string> range_faults(const TransformerConfig& config);

}  // namespace zoo
