#pragma once

#include "models/layers/stack.h"
#include "models/script/script_part.h"

namespace zoo::script {

// The layers of models/layers as TorchScript: each part holds the module's own weights under the same names,
// and its text computes what the module's forward computes in evaluation mode.

/// forward(x) -> y
/// The expression of activate() for the variable `x`.
std::string activation_source(Activation activation, const std::string& x);

ScriptPart linear_part(const LinearImpl& linear);

/// forward(ids) -> rows. Its weight is the table.
ScriptPart embedding_part(const EmbeddingImpl& embedding);

/// forward(x) -> y
ScriptPart norm_part(const NormImpl& norm, const TransformerConfig& config);

/// forward(x) -> y
ScriptPart feed_forward_part(const FeedForwardImpl& feed_forward, const TransformerConfig& config);

/// forward(x, bias, hidden_rows, causal, rotary, cache, past) -> y. `bias`, `hidden_rows` and `causal` are
/// those of AttentionMask; `rotary` is [] or [cos, sin]; `cache` is [] or [keys, values], each [B, Hkv,
/// capacity, D], written in place behind the `past` positions that it holds.
ScriptPart self_attention_part(const SelfAttentionImpl& attention, const TransformerConfig& config);

/// forward as that of the attention.
ScriptPart block_part(const BlockImpl& block, const TransformerConfig& config);

/// forward(x, attention_mask: Optional, caches, past) -> hidden: x [B, T, C] are embeddings, `caches` is []
/// or a [keys, values] for each layer. new_caches(batch, capacity, like) -> caches.
ScriptPart stack_part(const TransformerStackImpl& stack, const TransformerConfig& config);

}  // namespace zoo::script
