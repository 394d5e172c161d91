#pragma once

#include "models/layers/transformer_config.h"
#include "models/script/script_part.h"

namespace zoo::script {

/// The method generate(input_ids, max_new_tokens, temperature=1.0, top_k=0) -> new ids [B, n] of a decoder
/// whose text has check_ids(ids), new_caches(batch, capacity) and next_logits(ids, caches, past) -> [B, V],
/// and whose attributes are `eos_ids` and `pad_id`. It continues rows as generate() of models/generation
/// does, sliding context included.
std::string generate_source(const TransformerConfig& config);

}  // namespace zoo::script
