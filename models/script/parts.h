#pragma once

#include <string>

#include "models/layers/stack.h"
#include "models/script/script_part.h"

namespace zoo::script {

// The layers of models/layers as TorchScript: each part holds the module's own weights under the same names,
// and its text computes what the module's forward computes in evaluation mode.

/// The expression of activate() for the variable `x`.
std::string activation_source(Activation activation, const std::string& x);

/// forward(x) -> y
ScriptPart linear_part(const LinearImpl& linear);
ScriptPart linear_part(const at::Tensor& weight, const at::Tensor& bias);

/// forward(ids) -> rows. Its weight is the table.
ScriptPart embedding_part(const EmbeddingImpl& embedding);

/// forward(x) -> y
ScriptPart norm_part(const NormImpl& norm, const TransformerConfig& config);

/// forward(x) -> y
ScriptPart feed_forward_part(const FeedForwardImpl& feed_forward, const TransformerConfig& config);
ScriptPart experts_part(const ExpertsImpl& experts, const TransformerConfig& config);

// Methods of a stack that compute what depends on positions alone.

/// rotary_table[_in_window](length, past, x) -> [] or [cos, sin]; `kind` is the end of its name.
std::string rotary_table_method(const TransformerConfig& config, bool window, const std::string& kind);

/// position_scores(distances, table or x) -> [1, H, T, S] of T5's buckets or ALiBi, or
/// distance_table(attention_mask, length, x) -> [vectors, rows, padding] of disentangled attention; none for
/// other positions.
std::string position_methods(const TransformerConfig& config);

/// forward(x, bias, hidden_rows, causal, rotary, cache, past) -> y. `bias`, `hidden_rows` and `causal` are
/// those of AttentionMask; `rotary` is [] or [cos, sin]; `cache` is [] or [keys, values], each [B, Hkv,
/// capacity, D], written in place after its `past` positions. Throws c10::Error for Shaw's positions, which
/// are not supported yet.
ScriptPart self_attention_part(const SelfAttentionImpl& attention, const TransformerConfig& config);

/// read(memory [B, S, C]) -> [keys, values] of it; forward(x, read, bias, hidden_rows) -> y.
ScriptPart cross_attention_part(const CrossAttentionImpl& attention, const TransformerConfig& config);

/// forward as in self-attention; with cross-attention (x, bias, hidden_rows, causal, rotary, cache, past,
/// read, memory_bias, memory_hidden_rows), where `read` holds its keys and values of the memory.
ScriptPart block_part(const BlockImpl& block, const TransformerConfig& config);

/// forward(x, attention_mask: Optional, caches, past) -> hidden: x [B, T, C] are embeddings, `caches` is []
/// or a [keys, values] for each layer. new_caches(batch, capacity, like) -> caches.
/// With cross-attention read_memory(memory [B, S, C]) -> [keys, values] for each layer, and
/// forward(x, attention_mask: Optional, caches, past, read, memory_mask: Optional) -> hidden.
/// `config` is that of this stack: encoder_part() or decoder_part() of an encoder-decoder.
ScriptPart stack_part(const TransformerStackImpl& stack, const TransformerConfig& config);

/// The method generate(input_ids, max_new_tokens, temperature=1.0, top_k=0) -> new ids [B, n] of a decoder
/// whose text has embeddings.check(ids, name), new_caches(batch, capacity) and next_logits(ids, caches, past)
/// -> [B, V], and whose attributes are `eos_ids` and `pad_id`. It continues rows as generate() of
/// models/generation does, sliding context included.
std::string generate_source(const TransformerConfig& config);

/// The method generate(input_ids, max_new_tokens, temperature=1.0, top_k=0, attention_mask=None) -> new ids
/// [B, n] of an encoder-decoder whose text has embeddings.check(ids, name), read_source(ids, attention_mask)
/// -> read, new_caches(batch, capacity) and next_logits(ids, caches, past, read, attention_mask) -> [B, V].
/// Without a mask, the configuration's pad_token_id is hidden in input_ids unless it ends a text, as in
/// transformers. Throws c10::Error if the configuration has no decoder_start_token_id.
std::string encoder_decoder_generate_source(const TransformerConfig& config);

}  // namespace zoo::script
