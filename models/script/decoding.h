#pragma once

#include "models/layers/transformer_config.h"
#include "models/script/script_part.h"

namespace zoo::script {

/// The method generate(input_ids, max_new_tokens, temperature=1.0, top_k=0) -> new ids [B, n] of a decoder
/// whose text has embeddings.check(ids, name), new_caches(batch, capacity) and next_logits(ids, caches, past)
/// -> [B, V], and whose attributes are `eos_ids` and `pad_id`. It continues rows as generate() of
/// models/generation does, sliding context included.
std::string generate_source(const TransformerConfig& config);

/// The method generate(input_ids, max_new_tokens, temperature=1.0, top_k=0, attention_mask=None) -> new ids
/// [B, n] of an encoder-decoder whose text has embeddings.check(ids, name), read_source(ids, attention_mask)
/// -> read, new_caches(batch, capacity) and next_logits(ids, caches, past, read, attention_mask) -> [B, V].
/// Without a mask, the configuration's pad_token_id is hidden in input_ids unless it is an end token, as in
/// transformers. Throws c10::Error if the configuration has no decoder_start_token_id.
std::string encoder_decoder_generate_source(const TransformerConfig& config);

}  // namespace zoo::script
