#pragma once

#include "models/family.h"
#include "models/script/script_part.h"

namespace zoo::script {

/// t5::T5: forward(input_ids, attention_mask: Optional, decoder_input_ids) -> logits [B, T, V], and
/// generate(); of a bare one last_hidden_state [B, T, C]. t5::T5Encoder: forward(input_ids,
/// attention_mask=None) -> last_hidden_state.
ScriptPart t5_part(const Model& model);

}  // namespace zoo::script
