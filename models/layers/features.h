#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/layers/transformer_config.h"

namespace zoo {

/// The features of a model that an engine lacks, each as "field = value". A feature is a field of the
/// resolved configuration that changes the computation and differs from TransformerConfig's default: all
/// fields are, except sizes, dropout rates and initial weights. `known` names the engine's: "field", or
/// "field = value" for one value alone. So an engine refuses a field that is newer than it is.
std::vector<std::string> missing_features(const TransformerConfig& config,
                                          std::span<const std::string_view> known);

}  // namespace zoo
