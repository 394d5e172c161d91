#pragma once

#include "models/formats/weight_table.h"
#include "models/layers/transformer_config.h"

namespace zoo::llama {

/// Where LlamaModel, LlamaForCausalLM and LlamaForSequenceClassification keep our weights.
WeightTable weight_table(const TransformerConfig& config);

}  // namespace zoo::llama
