#pragma once

#include "models/formats/weight_table.h"
#include "models/layers/transformer_config.h"

namespace zoo::distilbert {

/// Where DistilBertModel and its heads keep our weights.
WeightTable weight_table(const TransformerConfig& config);

}  // namespace zoo::distilbert
