#pragma once

#include "models/layers/stack.h"
#include "models/script/script_part.h"

namespace zoo::script {

/// forward(x, attention_mask: Optional, caches, past) -> hidden: x [B, T, C] are embeddings, `caches` is []
/// or a [keys, values] for each layer. new_caches(batch, capacity, like) -> caches.
/// With cross-attention read_memory(memory [B, S, C]) -> [keys, values] for each layer, and
/// forward(x, attention_mask: Optional, caches, past, read, memory_mask: Optional) -> hidden.
/// `config` is that of this stack: encoder_part() or decoder_part() of an encoder-decoder.
ScriptPart stack_part(const TransformerStackImpl& stack, const TransformerConfig& config);

}  // namespace zoo::script
