#pragma once

#include <string>

#include "models/model.h"

namespace zoo::script {

// Text of a file's methods around the traced passes: what they take for granted, they check, and they repeat
// the steps of generation.

/// forward(input_ids, attention_mask=None), and token_type_ids=None after it if the model has segments; of an
/// encoder-decoder forward(input_ids, attention_mask, decoder_input_ids). Calls traced_forward().
std::string forward_source(const Model& model);

/// generate(input_ids, max_new_tokens, temperature=1.0, top_k=0) -> new ids [B, n], which continues rows as
/// generate() of models/generation does, sliding context included; an encoder-decoder's takes
/// attention_mask=None at the end. Calls traced_step(), and traced_encode() and traced_start(); reads the
/// attributes `eos_ids` and `pad_id`. Throws Error if an encoder-decoder has no decoder_start_token_id.
std::string generate_source(const Model& model);

}  // namespace zoo::script
