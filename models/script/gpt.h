#pragma once

#include "models/family.h"
#include "models/script/script_part.h"

namespace zoo::script {

/// gpt::GptForCausalLm: forward(input_ids, attention_mask=None) -> logits [B, T, V], and generate().
ScriptPart gpt_part(const Model& model);

}  // namespace zoo::script
