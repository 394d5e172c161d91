#pragma once

#include "models/family.h"
#include "models/script/script_part.h"

namespace zoo::script {

/// DecoderModel with each of its heads: forward(input_ids, attention_mask=None) -> logits, or last_hidden_state
/// of a bare one; generate() of a language model.
ScriptPart decoder_part(const Model& model);

}  // namespace zoo::script
