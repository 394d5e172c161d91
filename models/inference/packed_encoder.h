#pragma once

#include "models/inference/packed_stack.h"
#include "models/model.h"

namespace zoo {

/// True for a BERT-like encoder or T5's, on the CPU, of a kind that the packed kernels know.
bool can_pack_encoder(const Model& model);

/// From now on the model's encoder answers with packed weights, without computing what the mask hides; its
/// embeddings and heads stay as they are. It goes on with its modules where hidden states, attentions or
/// gradients are asked for, which options.release rules out. Throws c10::Error unless
/// can_pack_encoder(model).
void pack_encoder(Model& model, const inference::PackOptions& options);

}  // namespace zoo
