#pragma once

#include "models/model.h"
#include "models/script/script_part.h"

namespace zoo::script {

/// An encoder of models/encoder with any of its heads: forward(input_ids, attention_mask=None), and
/// token_type_ids=None behind them where the model has segments.
ScriptPart encoder_part(const Model& model);

}  // namespace zoo::script
