#pragma once

#include "models/model.h"
#include "models/script/script_part.h"

namespace zoo::script {

/// Features of the model that have no TorchScript (see missing_features); "parts" if the model does not list
/// its parts.
std::vector<std::string> missing(const Model& model);

/// A model, made from its parts(). A decoder or an encoder has forward(input_ids, attention_mask=None), and
/// token_type_ids=None after it if the model has segments; an encoder-decoder has
/// forward(input_ids, attention_mask: Optional, decoder_input_ids). They return the head's logits, a pair of
/// them for an answer's start and end, or the last hidden state of a bare model. A language model with a
/// decoder also has generate(). Throws Error naming what is missing(model).
ScriptPart model_part(const Model& model);

}  // namespace zoo::script
