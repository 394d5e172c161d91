#pragma once

#include "models/io/weight_table.h"
#include "models/layers/transformer_config.h"

namespace zoo::llama {

/// Where LlamaForCausalLM keeps our weights.
WeightTable weight_table(const TransformerConfig& config);

}  // namespace zoo::llama
