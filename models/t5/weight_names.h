#pragma once

#include "models/formats/weight_table.h"
#include "models/layers/transformer_config.h"

namespace zoo::t5 {

/// Where T5ForConditionalGeneration, T5Model and, for the shape of an encoder, T5EncoderModel keep our
/// weights.
WeightTable weight_table(const TransformerConfig& config);

}  // namespace zoo::t5
