#pragma once

#include "models/layers/attention/attention.h"
#include "models/script/script_part.h"

namespace zoo::script {

/// forward(x, bias, hidden_rows, causal, rotary, cache, past) -> y. `bias`, `hidden_rows` and `causal` are
/// those of AttentionMask; `rotary` is [] or [cos, sin]; `cache` is [] or [keys, values], each [B, Hkv,
/// capacity, D], written in place after its `past` positions. Throws c10::Error for Shaw's positions, which
/// are not supported yet.
ScriptPart self_attention_part(const SelfAttentionImpl& attention, const TransformerConfig& config);

/// read(memory [B, S, C]) -> [keys, values] of it; forward(x, read, bias, hidden_rows) -> y.
ScriptPart cross_attention_part(const CrossAttentionImpl& attention, const TransformerConfig& config);

}  // namespace zoo::script
