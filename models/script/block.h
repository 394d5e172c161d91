#pragma once

#include "models/layers/block.h"
#include "models/script/script_part.h"

namespace zoo::script {

/// forward as in self-attention; with cross-attention (x, bias, hidden_rows, causal, rotary, cache, past,
/// read, memory_bias, memory_hidden_rows), where `read` holds its keys and values of the memory.
ScriptPart block_part(const BlockImpl& block, const TransformerConfig& config);

}  // namespace zoo::script
