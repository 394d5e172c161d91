#pragma once

#include "models/model.h"
#include "models/script/script_part.h"

namespace zoo::script {

/// Features of the model that have no TorchScript (see missing_features); "parts" for one that does not tell
/// its parts.
std::vector<std::string> missing(const Model& model);

/// A whole model, made from its parts():
///   a decoder or an encoder: forward(input_ids, attention_mask=None), then token_type_ids=None where the
///   model has segments an encoder-decoder: forward(input_ids, attention_mask: Optional, decoder_input_ids)
/// Both give the head's logits, a pair of them for an answer's start and end, or the last hidden state of a
/// bare model. A language model with a decoder has generate() too. Throws Error naming what is
/// missing(model).
ScriptPart model_part(const Model& model);

}  // namespace zoo::script
